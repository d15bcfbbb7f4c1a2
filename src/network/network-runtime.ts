import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Service } from '../base/service.ts';
import type { NetworkState, SandboxBandwidth } from '../contract/network.ts';
import { AttachedSandboxes } from './attached-sandboxes.ts';
import type { AttachRequest, TeamLimits } from './attachment.ts';
import type { ByteAuthority } from './authority.ts';
import type { PerDirection } from './directions.ts';
import type { LaneCount } from './meter/counts.ts';
import { Metering } from './meter/metering.ts';
import type { Link } from './namespace/addresses.ts';
import type { KernelCount } from './namespace/kernel-counters.ts';
import { type NameServers, Namespaces } from './namespace/namespaces.ts';
import type { NodeGroup } from './namespace/node-group.ts';
import { Teams } from './teams.ts';

/** The dependencies of a `NetworkRuntime`. */
export interface NetworkParts {
  /** Whose sandboxes these are; other groups on the node are left alone. */
  group: NodeGroup;
  authority: ByteAuthority;
  /** `--quota-fail-open`. */
  is_fail_open: boolean;
  /** `--allow-sandbox-cidr`. */
  allowed_cidrs: readonly string[];
  /** The named network namespace that plays the node; null: the one of this process. */
  node_namespace: string | null;
  clock: Clock;
  log: Log;
}

/**
 * The network of this node's sandboxes: each has a namespace of its own, and if it or its team has a limit every packet
 * passes the meter. Without limits only the kernel counts. A failed meter is restarted; until then no metered packet
 * passes. Source: contract section 7, "Network".
 */
export class NetworkRuntime implements Service {
  readonly #namespaces: Namespaces;
  readonly #metering: Metering;
  readonly #attached: AttachedSandboxes;

  constructor(parts: NetworkParts) {
    const teams = new Teams();
    this.#namespaces = new Namespaces(parts);
    this.#metering = new Metering({ ...parts, lender: teams.lender(parts.authority) });
    this.#attached = new AttachedSandboxes({ teams, namespaces: this.#namespaces, metering: this.#metering });
  }

  /** Sets the node's rules and starts the meter. Rejects if any of this fails. */
  async start(): Promise<void> {
    await this.#namespaces.open();
    await this.#metering.start();
  }

  /**
   * Stops the meter. Namespaces stay, and the rules as long as there are any: metered sandboxes have no network until
   * somebody takes them over.
   */
  async stop(): Promise<void> {
    await this.#attached.settle();
    await this.#metering.stop();
    await this.#namespaces.close();
  }

  /** The group's sandboxes that have a namespace or a part of one, whichever manager created it. */
  list(): string[] {
    return this.#namespaces.list();
  }

  /** The sandboxes that this runtime meters. */
  get attached(): string[] {
    return this.#attached.ids;
  }

  /** The teams of the sandboxes that this runtime meters. */
  get teams(): string[] {
    return this.#attached.teams;
  }

  /** Whether the meter runs. */
  state(): NetworkState {
    return { mode: 'metered', reason: this.#metering.failure, block_all: 'network_namespace' };
  }

  /** The path of a sandbox's network namespace, as for `nsenter --net`. */
  namespacePath(sandbox_id: string): string {
    return this.#namespaces.pathOf(sandbox_id);
  }

  /** Both ends of a sandbox's link; null if it has none. */
  async linkOf(sandbox_id: string): Promise<Link | null> {
    return await this.#namespaces.linkOf(sandbox_id);
  }

  /** Lets sandboxes reach these name servers; see `NodeRules`. */
  async useNameServers(name_servers: NameServers): Promise<void> {
    await this.#namespaces.useNameServers(name_servers);
  }

  /** Sets the node's rules again if somebody has removed them. */
  async repair(): Promise<void> {
    await this.#namespaces.repair();
  }

  /**
   * Gives a sandbox its network; resolves when packets can pass. Rejects with ProgramError or MeterError; the network is
   * then removed again.
   */
  async attach(request: AttachRequest): Promise<void> {
    const { sandbox_id } = request;
    try {
      await this.#attached.add(request, (is_metered) => this.#namespaces.create(sandbox_id, is_metered));
    } catch (error) {
      await this.#namespaces.remove(sandbox_id);
      throw error;
    }
  }

  /**
   * Takes over a sandbox's network from another run, whose connections survive. `pid`: a process in its namespace, null
   * if there is none. Rejects with ProgramError or MeterError, of code `EBUSY` if that other run still meters it.
   */
  async takeOver(request: AttachRequest, pid: number | null = null): Promise<void> {
    if (pid !== null) await this.#namespaces.restore(request.sandbox_id, pid);
    await this.#attached.add(request, null);
  }

  /** Cuts a sandbox off, whichever runtime meters it; its usage is final then. Idempotent. */
  async cut(sandbox_id: string): Promise<void> {
    await this.#namespaces.cut(sandbox_id);
    await this.#attached.close(sandbox_id);
  }

  /** Removes a sandbox's network, whichever runtime meters it. Idempotent. */
  async detach(sandbox_id: string): Promise<void> {
    await this.#attached.close(sandbox_id);
    await this.#namespaces.remove(sandbox_id);
    this.#attached.remove(sandbox_id);
  }

  /** Stops metering a sandbox whose network another runtime has removed. Idempotent. */
  async release(sandbox_id: string): Promise<void> {
    await this.#attached.close(sandbox_id);
    this.#attached.remove(sandbox_id);
  }

  /** Changes a sandbox's bandwidth, also for open connections. */
  async setBandwidth(sandbox_id: string, bandwidth: SandboxBandwidth): Promise<void> {
    await this.#attached.limit(sandbox_id, bandwidth);
  }

  /** Changes a team's limits, also for open connections. */
  async setTeamLimits(team_id: string, team_limits: TeamLimits): Promise<void> {
    if (this.teams.includes(team_id)) await this.#attached.limitTeam(team_id, team_limits);
  }

  /** What the kernel let pass of a sandbox, whichever runtime meters it; null if it has no network here. */
  async passed(sandbox_id: string): Promise<PerDirection<KernelCount> | null> {
    return await this.#namespaces.counts(sandbox_id);
  }

  /** What this runtime's meter has counted of a sandbox; null if it does not meter it. */
  meterCounts(sandbox_id: string): PerDirection<LaneCount> | null {
    const counts = this.#attached.countsOf(sandbox_id);
    return counts && { egress: counts.egress.read(), ingress: counts.ingress.read() };
  }
}
