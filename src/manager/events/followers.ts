import type { Position } from '../database/cursor.ts';

/** Events looked at in one poll; where there are more, the next poll follows at once. */
const POLLED_EVENTS = 1_000;

/** What is polled. */
export interface FollowedFeed {
  /** The position after the last event. */
  end(): Promise<Position>;
  /** Whose the next events after a position are. */
  teams(after: Position, limit: number): Promise<(Position & { team_id: string })[]>;
}

/** One who follows a team's events. */
export interface Follower {
  /** Resolves once the team has events that were not there when this was called; it may do so without any. */
  next(): Promise<void>;
  /** Call it at the end. */
  leave(): void;
}

/** A wait of each follower's own: one of a whole team would keep something of all who have left. */
interface Waiting extends Follower {
  wake(): void;
}

/** Who waits for events: one poll for all followers of this replica, whichever replica adds them. */
export class Followers {
  readonly #feed: FollowedFeed;
  readonly #of_team = new Map<string, Set<Waiting>>();
  /** Up to where events have been polled; null while nobody follows. */
  #position: Position | null = null;
  #count = 0;

  constructor(feed: FollowedFeed) {
    this.#feed = feed;
  }

  /** How many there are. */
  get count(): number {
    return this.#count;
  }

  /** One more, until it leaves. */
  add(team_id: string): Follower {
    let awaited: PromiseWithResolvers<void> | null = null;
    const follower: Waiting = {
      next() {
        awaited ??= Promise.withResolvers<void>();
        return awaited.promise;
      },
      wake() {
        awaited?.resolve();
        awaited = null;
      },
      leave: () => this.#remove(team_id, follower),
    };
    const others = this.#of_team.get(team_id) ?? new Set();
    this.#of_team.set(team_id, others.add(follower));
    this.#count += 1;
    return follower;
  }

  /** Wakes the followers of teams that have new events; true where others may follow at once. */
  async poll(): Promise<boolean> {
    if (this.#count === 0) {
      this.#position = null;
      return false;
    }
    if (this.#position === null) {
      this.#position = await this.#feed.end();
      // Events may have come between what followers have read and this.
      for (const team_id of this.#of_team.keys()) this.#wake(team_id);
      return false;
    }
    const added = await this.#feed.teams(this.#position, POLLED_EVENTS);
    this.#position = added.at(-1) ?? this.#position;
    for (const team_id of new Set(added.map((event) => event.team_id))) this.#wake(team_id);
    return added.length === POLLED_EVENTS;
  }

  #wake(team_id: string): void {
    for (const follower of this.#of_team.get(team_id) ?? []) follower.wake();
  }

  #remove(team_id: string, follower: Waiting): void {
    const others = this.#of_team.get(team_id);
    if (!others?.delete(follower)) return;
    this.#count -= 1;
    if (others.size === 0) this.#of_team.delete(team_id);
  }
}
