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

/** Who waits for events: one poll for all followers of this replica, whichever replica adds them. */
export class Followers {
  readonly #feed: FollowedFeed;
  /** The next event of each followed team. */
  readonly #awaited = new Map<string, PromiseWithResolvers<void>>();
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

  /** Counts one more, until the function given back is called. */
  add(): () => void {
    this.#count += 1;
    return () => {
      this.#count -= 1;
      if (this.#count === 0) this.#awaited.clear();
    };
  }

  /** Resolves once a team has events that were not there when this was called; it may do so without any. */
  next(team_id: string): Promise<void> {
    const awaited = this.#awaited.get(team_id) ?? Promise.withResolvers<void>();
    this.#awaited.set(team_id, awaited);
    return awaited.promise;
  }

  /** Wakes the followers of teams that have new events; true where others may follow at once. */
  async poll(): Promise<boolean> {
    if (this.#count === 0) {
      this.#position = null;
      return false;
    }
    if (this.#position === null) {
      // Events may have come between what followers read and this.
      const waiting = [...this.#awaited.keys()];
      this.#position = await this.#feed.end();
      for (const team_id of waiting) this.#wake(team_id);
      return false;
    }
    const added = await this.#feed.teams(this.#position, POLLED_EVENTS);
    this.#position = added.at(-1) ?? this.#position;
    for (const team_id of new Set(added.map((event) => event.team_id))) this.#wake(team_id);
    return added.length === POLLED_EVENTS;
  }

  #wake(team_id: string): void {
    this.#awaited.get(team_id)?.resolve();
    this.#awaited.delete(team_id);
  }
}
