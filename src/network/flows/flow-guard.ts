import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Service } from '../../base/service.ts';
import { FLOWS_LOOK_MS, FLOWS_TEAM_SHARE, FLOWS_TIGHT_SHARE } from '../../contract/defaults.ts';
import { linkOf } from '../namespace/addresses.ts';

/** Looks after a long one are further apart: it takes at most one part in so many of this program's time. */
const REST_FACTOR = 4;

/** The dependencies of a `FlowGuard`. */
export interface FlowGuardParts {
  /** The node's table. */
  flows: { readonly size: number; byLink(): Promise<Map<number, number>> };
  /** Entries that all sandboxes together may have. */
  sandboxes_held: number;
  /** Whether there are sandboxes. */
  isNeeded: () => boolean;
  /** The teams of the group's links, as numbers, by the links' names. */
  teams: () => Promise<Map<string, number>>;
  /** Refuses new flows of these links alone. */
  refuse: (links: string[]) => Promise<void>;
  clock: Clock;
  log: Log;
}

/**
 * Keeps room in the node's table of flows: while a team's sandboxes hold more than the team's part, they begin no new
 * ones. Looks once a second, at one number while there is room. Source: contract section 7, "Network".
 */
export class FlowGuard implements Service {
  readonly #parts: FlowGuardParts;
  #timer: Timer | null = null;
  #is_stopped = false;
  /** The links that are refused; null: whatever an earlier manager has set. */
  #refused: string | null = null;
  #is_failing = false;

  constructor(parts: FlowGuardParts) {
    this.#parts = parts;
  }

  /** Looks from now on. */
  async start(): Promise<void> {
    this.#after(FLOWS_LOOK_MS);
  }

  /** Idempotent. */
  async stop(): Promise<void> {
    this.#is_stopped = true;
    this.#timer?.cancel();
  }

  /** Looks once. */
  async look(): Promise<void> {
    const links = await this.#crowding();
    const refused = links.join(' ');
    if (refused === this.#refused) return;
    await this.#parts.refuse(links);
    if (links.length > 0 && !this.#refused)
      this.#parts.log.warn({ links: links.length }, 'the node tracks too many connections of a team');
    this.#refused = refused;
  }

  /** The rules were made again, and refuse nobody. */
  reset(): void {
    this.#refused = null;
  }

  /** The links of the teams that hold more than their part. */
  async #crowding(): Promise<string[]> {
    const { flows, sandboxes_held: room, teams, isNeeded } = this.#parts;
    // Not even one team alone can hold too many.
    if (!isNeeded() || flows.size <= room * FLOWS_TEAM_SHARE) return [];
    const [by_link, team_of] = [await flows.byLink(), await teams()];
    const held = new Map([...team_of.values()].map((team) => [team, 0]));
    let sum = 0;
    for (const [index, count] of by_link) {
      sum += count;
      const team = team_of.get(linkOf(index).interface);
      if (team !== undefined) held.set(team, (held.get(team) ?? 0) + count);
    }
    // One part more than there are teams: a team that comes later finds room.
    const equal = room / (held.size + 1);
    const part =
      sum > room * FLOWS_TIGHT_SHARE ? Math.min(equal, room * FLOWS_TEAM_SHARE) : room * FLOWS_TEAM_SHARE;
    const isOver = (team: number) => (held.get(team) ?? 0) > part;
    return [...team_of].flatMap(([name, team]) => (isOver(team) ? [name] : [])).sort();
  }

  #after(ms: number): void {
    if (!this.#is_stopped) this.#timer = this.#parts.clock.after(ms, () => void this.#run());
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#parts;
    const began = clock.monotonicMs();
    try {
      await this.look();
      this.#is_failing = false;
    } catch (error) {
      if (!this.#is_failing) log.warn({ err: error }, "the node's connections cannot be looked at");
      this.#is_failing = true;
    }
    this.#after(Math.max(FLOWS_LOOK_MS, (clock.monotonicMs() - began) * REST_FACTOR));
  }
}
