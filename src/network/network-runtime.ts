import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Service } from '../base/service.ts';
import type { NetworkState, SandboxBandwidth } from '../contract/network.ts';
import { type AttachRequest, meteredDirections, ownLimits, type TeamLimits } from './attachment.ts';
import type { ByteAuthority } from './authority.ts';
import { DIRECTIONS, type PerDirection } from './directions.ts';
import { SharedCounts } from './meter/counts.ts';
import { Metering } from './meter/metering.ts';
import { Namespaces } from './namespace/namespaces.ts';
import { Teams } from './teams.ts';
import type { TrafficUsage } from './usage.ts';

/** The dependencies of a `NetworkRuntime`. */
export interface NetworkParts {
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

interface Attached {
  request: AttachRequest;
  counts: SharedCounts;
  is_metered: PerDirection<boolean>;
  /** Whether its queues are open. */
  is_open: boolean;
  /** The queue of operations on it, run one at a time. */
  work: Promise<unknown>;
}

/**
 * The network of this node's sandboxes: each has a namespace of its own, and if it or its team has a limit every packet
 * passes the meter. Without limits only the kernel counts. A failed meter is restarted; until then no metered packet
 * passes. Source: contract section 7, "Network".
 */
export class NetworkRuntime implements Service {
  readonly #namespaces: Namespaces;
  readonly #attached = new Map<string, Attached>();
  readonly #metering: Metering;
  readonly #teams = new Teams();
  #found = new Set<string>();

  constructor(parts: NetworkParts) {
    this.#metering = new Metering({ ...parts, lender: this.#teams.lender(parts.authority) });
    const { allowed_cidrs, node_namespace } = parts;
    this.#namespaces = new Namespaces({ allowed_cidrs, node_namespace });
  }

  /** Sets the node's rules, finds existing namespaces, and starts the meter. Rejects if any of this fails. */
  async start(): Promise<void> {
    this.#found = new Set(await this.#namespaces.open());
    await this.#metering.start();
  }

  /** Stops the meter. Namespaces and rules stay: metered sandboxes have no network until the next start. */
  async stop(): Promise<void> {
    await Promise.allSettled([...this.#attached.values()].map(({ work }) => work));
    await this.#metering.stop();
  }

  /** The sandboxes of an earlier run that still have a namespace and are not attached yet: attach or remove them. */
  get found(): string[] {
    return [...this.#found];
  }

  /** The path of a sandbox's network namespace, as for `nsenter --net`. */
  namespacePath(sandbox_id: string): string {
    return Namespaces.pathOf(sandbox_id);
  }

  /** The addresses at which the node reaches a sandbox; null if it has only its loopback interface. */
  addressesOf(sandbox_id: string): { ipv4: string; ipv6: string } | null {
    return this.#namespaces.linkOf(sandbox_id)?.sandbox ?? null;
  }

  /** Whether the meter runs. */
  state(): NetworkState {
    return { mode: 'metered', reason: this.#metering.failure };
  }

  /**
   * Gives a sandbox its network, or takes over that of an earlier run; resolves when packets can pass. Rejects with
   * ProgramError or MeterError; a new network is then removed again.
   */
  async attach(request: AttachRequest): Promise<void> {
    const { sandbox_id, team_id, mode, team_limits } = request;
    await this.#limitTeam(team_id, team_limits);
    const is_linked = mode === 'allow-all';
    const wanted = this.#wanted(request);
    const is_known = this.#found.delete(sandbox_id);
    const attached: Attached = {
      request,
      counts: new SharedCounts(),
      is_metered: wanted,
      is_open: false,
      work: Promise.resolve(),
    };
    try {
      if (!is_known) await this.#namespaces.create(sandbox_id, wanted, is_linked);
      this.#attached.set(sandbox_id, attached);
      if (isAny(wanted)) await this.#openQueues(attached);
      if (is_known && is_linked) await this.#namespaces.setMetered(sandbox_id, wanted);
    } catch (error) {
      this.#attached.delete(sandbox_id);
      this.#leaveTeam(team_id);
      if (is_known) this.#found.add(sandbox_id);
      else await this.#namespaces.remove(sandbox_id);
      throw error;
    }
  }

  /** Removes a sandbox's network and returns its final usage; null if it has no network. Idempotent. */
  async detach(sandbox_id: string): Promise<PerDirection<TrafficUsage> | null> {
    this.#found.delete(sandbox_id);
    const attached = this.#attached.get(sandbox_id);
    if (!attached) {
      await this.#namespaces.remove(sandbox_id);
      return null;
    }
    return await this.#inTurn(attached, async () => {
      await this.#namespaces.cut(sandbox_id);
      await this.#metering.close(sandbox_id, false);
      const usage = await this.#usageOf(attached);
      await this.#namespaces.remove(sandbox_id);
      this.#attached.delete(sandbox_id);
      this.#leaveTeam(attached.request.team_id);
      return usage;
    });
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
    if (this.#teams.has(team_id)) await this.#limitTeam(team_id, team_limits);
  }

  /** A sandbox's traffic so far; null if it is not attached. Rejects with ProgramError. */
  async usage(sandbox_id: string): Promise<PerDirection<TrafficUsage> | null> {
    const attached = this.#attached.get(sandbox_id);
    return attached ? await this.#usageOf(attached) : null;
  }

  async #limitTeam(team_id: string, limits: TeamLimits): Promise<void> {
    if (!this.#teams.change(team_id, limits)) return;
    this.#metering.limitTeam(team_id, this.#teams.ratesOf(team_id));
    await Promise.all(
      this.#attachedOf(team_id).map((attached) => this.#inTurn(attached, () => this.#switch(attached))),
    );
  }

  #leaveTeam(team_id: string): void {
    if (this.#attachedOf(team_id).length === 0) this.#teams.forget(team_id);
  }

  #attachedOf(team_id: string): Attached[] {
    return [...this.#attached.values()].filter(({ request }) => request.team_id === team_id);
  }

  /** The directions of a sandbox whose packets must be metered. */
  #wanted({ team_id, mode, bandwidth }: AttachRequest): PerDirection<boolean> {
    if (mode === 'block-all') return { egress: false, ingress: false };
    return meteredDirections(bandwidth, this.#teams.limitsOf(team_id));
  }

  async #usageOf({ request, counts }: Attached): Promise<PerDirection<TrafficUsage>> {
    const passed = await this.#namespaces.counts(request.sandbox_id);
    const usage = (direction: (typeof DIRECTIONS)[number]): TrafficUsage => {
      const { waited_us, ...metered } = counts[direction].read();
      const { bytes = metered.passed_bytes, packets = metered.passed_packets } = passed?.[direction] ?? {};
      const waited_ms = Math.floor(waited_us / 1_000);
      return { ...metered, passed_bytes: bytes, passed_packets: packets, waited_ms };
    };
    return { egress: usage('egress'), ingress: usage('ingress') };
  }

  /** Opens or closes queues after limits were added or removed: first the queues, then the rules that use them. */
  async #switch(attached: Attached): Promise<void> {
    const { sandbox_id, mode } = attached.request;
    if (mode === 'block-all') return;
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
      namespace_path: Namespaces.pathOf(sandbox_id),
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
