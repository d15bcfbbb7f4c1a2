import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Service } from '../base/service.ts';
import type { NetworkState } from '../contract/network.ts';
import type { SandboxBandwidth } from '../contract/sandboxes.ts';
import { type AttachRequest, meteredDirections, ownLimits, type TeamLimits } from './attachment.ts';
import type { ByteAuthority } from './authority.ts';
import { DIRECTIONS, type PerDirection } from './directions.ts';
import type { FlowBounds } from './flows/flow-bounds.ts';
import { FlowGuard } from './flows/flow-guard.ts';
import type { FlowCounter } from './flows/flow-rules.ts';
import { type LaneCount, SharedCounts } from './meter/counts.ts';
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
  /** Bounds of flows other than those of the node's size. */
  flow_bounds?: Partial<FlowBounds>;
  clock: Clock;
  log: Log;
}

/** The table of flows that a node tracks. */
export interface FlowTable {
  size: number;
  size_max: number;
  /** Packets refused to begin flows with, by the bound. */
  refused: Record<FlowCounter, number>;
}

interface Attached {
  request: AttachRequest;
  counts: SharedCounts;
  is_metered: PerDirection<boolean>;
  /** Whether its queues are open. */
  is_open: boolean;
  /** Whether it has lost its network for good. */
  is_cut: boolean;
  /** The queue of operations on it, run one at a time. */
  work: Promise<unknown>;
}

/**
 * The network of this node's sandboxes: each has a namespace of its own, and if it or its team has a limit every packet
 * passes the meter. Without limits only the kernel counts. A failed meter is restarted; until then no metered packet
 * passes. Source: contract section 7, "Network".
 */
export class NetworkRuntime implements Service {
  readonly #teams = new Teams();
  readonly #namespaces: Namespaces;
  readonly #metering: Metering;
  readonly #parts: NetworkParts;
  #flow_guard: FlowGuard | null = null;
  /** The sandboxes that this runtime meters, by their ids. */
  readonly #attached = new Map<string, Attached>();

  constructor(parts: NetworkParts) {
    this.#parts = parts;
    const teamOf = (sandbox_id: string) => this.#attached.get(sandbox_id)?.request.team_id ?? null;
    this.#namespaces = new Namespaces({ ...parts, teamOf });
    this.#metering = new Metering({ ...parts, lender: this.#teams.lender(parts.authority) });
  }

  /** Sets the node's rules and starts the meter. Rejects if any of this fails. */
  async start(): Promise<void> {
    await this.#namespaces.open();
    await this.#metering.start();
    const namespaces = this.#namespaces;
    const { sandboxes_held } = await namespaces.flowBounds();
    this.#flow_guard = new FlowGuard({
      ...this.#parts,
      flows: await namespaces.flows(),
      sandboxes_held,
      isNeeded: () => this.#attached.size > 0,
      teams: () => namespaces.teams(),
      refuse: (links) => namespaces.refuseFlows(links),
    });
    await this.#flow_guard.start();
  }

  /**
   * Stops the meter. Namespaces stay, and the rules as long as there are any: metered sandboxes have no network until
   * somebody takes them over.
   */
  async stop(): Promise<void> {
    // Changes under way end first.
    await Promise.allSettled([...this.#attached.values()].map(({ work }) => work));
    await this.#flow_guard?.stop();
    await this.#metering.stop();
    await this.#namespaces.close();
  }

  /** The group's sandboxes that have a namespace or a part of one, whichever manager created it. */
  list(): string[] {
    return this.#namespaces.list();
  }

  /** The sandboxes that this runtime meters. */
  get attached(): string[] {
    return [...this.#attached.keys()];
  }

  /** The teams of the sandboxes that this runtime meters. */
  get teams(): string[] {
    return [...new Set([...this.#attached.values()].map(({ request }) => request.team_id))];
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
    if (await this.#namespaces.repair()) this.#flow_guard?.reset();
  }

  /** Looks at the node's table of flows now, instead of within a second; see `FlowGuard`. */
  async lookAtFlows(): Promise<void> {
    await this.#flow_guard?.look();
  }

  /** The table of flows that the node tracks. Rejects with SystemError. */
  async flowTable(): Promise<FlowTable> {
    const { size, size_max } = await this.#namespaces.flows();
    return { size, size_max, refused: await this.#namespaces.refusedFlows() };
  }

  /**
   * Gives a sandbox its network; resolves when packets can pass. Rejects with ToolError or MeterError; the network is
   * then removed again.
   */
  async attach(request: AttachRequest): Promise<void> {
    const { sandbox_id } = request;
    try {
      await this.#add(request, (is_metered) =>
        this.#namespaces.create(sandbox_id, request.team_id, is_metered),
      );
    } catch (error) {
      await this.#namespaces.remove(sandbox_id);
      throw error;
    }
  }

  /**
   * Takes over a sandbox's network from another run, whose connections survive. `pid`: a process in its namespace, null
   * if there is none. Rejects with ToolError or MeterError, of code `EBUSY` if that other run still meters it.
   */
  async takeOver(request: AttachRequest, pid: number | null = null): Promise<void> {
    if (pid !== null) await this.#namespaces.restore(request.sandbox_id, pid);
    await this.#add(request, null);
  }

  /** Cuts a sandbox off, whichever runtime meters it; its usage is final then. Idempotent. */
  async cut(sandbox_id: string): Promise<void> {
    await this.#namespaces.cut(sandbox_id);
    await this.#close(sandbox_id);
  }

  /** Removes a sandbox's network, whichever runtime meters it. Idempotent. */
  async detach(sandbox_id: string): Promise<void> {
    await this.#close(sandbox_id);
    await this.#namespaces.remove(sandbox_id);
    this.#forget(sandbox_id);
  }

  /** Stops metering a sandbox whose network another runtime has removed. Idempotent. */
  async release(sandbox_id: string): Promise<void> {
    await this.#close(sandbox_id);
    this.#forget(sandbox_id);
  }

  /** Changes a sandbox's bandwidth, also for open connections. */
  async setBandwidth(sandbox_id: string, bandwidth: SandboxBandwidth): Promise<void> {
    const attached = this.#attached.get(sandbox_id);
    if (!attached) return;
    await this.#inTurn(attached, async () => {
      attached.request = { ...attached.request, bandwidth };
      this.#metering.limit(sandbox_id, ownLimits(bandwidth));
      await this.#switch(attached);
    });
  }

  /** Changes a team's limits, also for open connections. */
  async setTeamLimits(team_id: string, team_limits: TeamLimits): Promise<void> {
    if (this.teams.includes(team_id)) await this.#limitTeam(team_id, team_limits);
  }

  /** What the kernel let pass of a sandbox, whichever runtime meters it; null if it has no network here. */
  async passed(sandbox_id: string): Promise<PerDirection<KernelCount> | null> {
    return await this.#namespaces.counts(sandbox_id);
  }

  /** What this runtime's meter has counted of a sandbox; null if it does not meter it. */
  meterCounts(sandbox_id: string): PerDirection<LaneCount> | null {
    const counts = this.#attached.get(sandbox_id)?.counts;
    if (!counts) return null;
    return { egress: counts.egress.read(), ingress: counts.ingress.read() };
  }

  /**
   * Adds a sandbox; resolves when packets can pass. `create` makes its namespace with the rules for the metered
   * directions; null: it is there, and gets them once its queues are open. Rejects with ToolError or MeterError.
   */
  async #add(
    request: AttachRequest,
    create: ((is_metered: PerDirection<boolean>) => Promise<void>) | null,
  ): Promise<void> {
    const { sandbox_id, team_id, team_limits } = request;
    await this.#limitTeam(team_id, team_limits);
    const is_metered = this.#wanted(request);
    const attached: Attached = {
      request,
      counts: new SharedCounts(),
      is_metered,
      is_open: false,
      is_cut: false,
      work: Promise.resolve(),
    };
    try {
      await create?.(is_metered);
      this.#attached.set(sandbox_id, attached);
      if (isAny(is_metered)) await this.#openQueues(attached);
      if (create === null) await this.#namespaces.setMetered(sandbox_id, is_metered);
    } catch (error) {
      this.#forget(sandbox_id);
      this.#leaveTeam(team_id);
      throw error;
    }
  }

  async #limitTeam(team_id: string, limits: TeamLimits): Promise<void> {
    if (!this.#teams.change(team_id, limits)) return;
    this.#metering.limitTeam(team_id, this.#teams.ratesOf(team_id));
    await Promise.all(
      this.#attachedOf(team_id).map((attached) => this.#inTurn(attached, () => this.#switch(attached))),
    );
  }

  /** Closes a sandbox's queues for good; the kernel drops what it holds. Idempotent. */
  async #close(sandbox_id: string): Promise<void> {
    const attached = this.#attached.get(sandbox_id);
    if (!attached) return;
    await this.#inTurn(attached, async () => {
      attached.is_cut = true;
      await this.#metering.close(sandbox_id, false);
    });
  }

  /** Forgets a sandbox. Idempotent. */
  #forget(sandbox_id: string): void {
    const attached = this.#attached.get(sandbox_id);
    this.#attached.delete(sandbox_id);
    if (attached) this.#leaveTeam(attached.request.team_id);
  }

  #leaveTeam(team_id: string): void {
    if (this.#attachedOf(team_id).length === 0) this.#teams.forget(team_id);
  }

  #attachedOf(team_id: string): Attached[] {
    return [...this.#attached.values()].filter(({ request }) => request.team_id === team_id);
  }

  /** The directions of a sandbox whose packets must be metered. */
  #wanted({ team_id, bandwidth }: AttachRequest): PerDirection<boolean> {
    return meteredDirections(bandwidth, this.#teams.limitsOf(team_id));
  }

  /** Opens or closes queues after limits were added or removed: first the queues, then the rules that use them. */
  async #switch(attached: Attached): Promise<void> {
    const { sandbox_id } = attached.request;
    if (attached.is_cut) return;
    const wanted = this.#wanted(attached.request);
    if (isAny(wanted) && !attached.is_open) await this.#openQueues(attached);
    if (DIRECTIONS.some((direction) => wanted[direction] !== attached.is_metered[direction])) {
      await this.#namespaces.setMetered(sandbox_id, wanted);
      attached.is_metered = wanted;
    }
    if (!isAny(wanted) && attached.is_open) {
      attached.is_open = false;
      await this.#metering.close(sandbox_id, true);
    }
  }

  async #openQueues(attached: Attached): Promise<void> {
    const { sandbox_id, team_id, bandwidth } = attached.request;
    attached.is_open = true;
    await this.#metering.open({
      sandbox_id,
      team_id,
      namespace_path: this.#namespaces.pathOf(sandbox_id),
      limits: ownLimits(bandwidth),
      team_rates: this.#teams.ratesOf(team_id),
      memory: attached.counts.memory,
    });
  }

  #inTurn<Result>(attached: Attached, run: () => Promise<Result>): Promise<Result> {
    const result = attached.work.then(run);
    attached.work = result.catch(() => {});
    return result;
  }
}

function isAny({ egress, ingress }: PerDirection<boolean>): boolean {
  return egress || ingress;
}
