import type { SandboxBandwidth } from '../contract/network.ts';
import { type AttachRequest, meteredDirections, ownLimits, type TeamLimits } from './attachment.ts';
import { DIRECTIONS, type PerDirection } from './directions.ts';
import { SharedCounts } from './meter/counts.ts';
import type { Metering } from './meter/metering.ts';
import type { Namespaces } from './namespace/namespaces.ts';
import type { Teams } from './teams.ts';

/** What `AttachedSandboxes` works with. */
export interface AttachedSandboxParts {
  teams: Teams;
  namespaces: Namespaces;
  metering: Metering;
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

/** The sandboxes that a runtime meters: their limits, and the queues that these require. */
export class AttachedSandboxes {
  readonly #teams: Teams;
  readonly #namespaces: Namespaces;
  readonly #metering: Metering;
  readonly #attached = new Map<string, Attached>();

  constructor({ teams, namespaces, metering }: AttachedSandboxParts) {
    this.#teams = teams;
    this.#namespaces = namespaces;
    this.#metering = metering;
  }

  /** Their ids. */
  get ids(): string[] {
    return [...this.#attached.keys()];
  }

  /** Their teams. */
  get teams(): string[] {
    return [...new Set([...this.#attached.values()].map(({ request }) => request.team_id))];
  }

  /** What the meter has counted of a sandbox; null if it is not attached. */
  countsOf(sandbox_id: string): SharedCounts | null {
    return this.#attached.get(sandbox_id)?.counts ?? null;
  }

  /**
   * Adds a sandbox; resolves when packets can pass. `create` makes its namespace with the rules for the metered
   * directions; null: it is there, and gets them once its queues are open. Rejects with ProgramError or MeterError.
   */
  async add(
    request: AttachRequest,
    create: ((is_metered: PerDirection<boolean>) => Promise<void>) | null,
  ): Promise<void> {
    const { sandbox_id, team_id, team_limits } = request;
    await this.limitTeam(team_id, team_limits);
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
      this.remove(sandbox_id);
      this.#leaveTeam(team_id);
      throw error;
    }
  }

  /** Changes a sandbox's own limits, also for open connections. */
  async limit(sandbox_id: string, bandwidth: SandboxBandwidth): Promise<void> {
    const attached = this.#attached.get(sandbox_id);
    if (!attached) return;
    await this.#inTurn(attached, async () => {
      attached.request = { ...attached.request, bandwidth };
      this.#metering.limit(sandbox_id, ownLimits(bandwidth));
      await this.#switch(attached);
    });
  }

  /** Changes a team's limits, also for open connections. */
  async limitTeam(team_id: string, limits: TeamLimits): Promise<void> {
    if (!this.#teams.change(team_id, limits)) return;
    this.#metering.limitTeam(team_id, this.#teams.ratesOf(team_id));
    await Promise.all(
      this.#attachedOf(team_id).map((attached) => this.#inTurn(attached, () => this.#switch(attached))),
    );
  }

  /** Closes a sandbox's queues for good; the kernel drops what it holds. Idempotent. */
  async close(sandbox_id: string): Promise<void> {
    const attached = this.#attached.get(sandbox_id);
    if (!attached) return;
    await this.#inTurn(attached, async () => {
      attached.is_cut = true;
      await this.#metering.close(sandbox_id, false);
    });
  }

  /** Forgets a sandbox. Idempotent. */
  remove(sandbox_id: string): void {
    const attached = this.#attached.get(sandbox_id);
    this.#attached.delete(sandbox_id);
    if (attached) this.#leaveTeam(attached.request.team_id);
  }

  /** Resolves when no change is under way. */
  async settle(): Promise<void> {
    await Promise.allSettled([...this.#attached.values()].map(({ work }) => work));
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
