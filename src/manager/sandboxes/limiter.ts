import pLimit, { type LimitFunction } from 'p-limit';

/**
 * Limits concurrent tasks, in all and within each group, so that the slow tasks of one group leave slots to the others.
 * Waiting tasks of a group start in order.
 */
export class Limiter {
  readonly #all: LimitFunction;
  readonly #group_max: number;
  readonly #groups = new Map<string, LimitFunction>();

  constructor(max: number, group_max: number) {
    this.#all = pLimit(max);
    this.#group_max = group_max;
  }

  /** Runs `task` once there is a slot; resolves or rejects as it does. */
  async run<Result>(group: string, task: () => Promise<Result>): Promise<Result> {
    const limit = this.#groups.get(group) ?? pLimit(this.#group_max);
    this.#groups.set(group, limit);
    try {
      // The group's slot comes first: its other tasks must not wait in the line of all groups.
      return await limit(() => this.#all(task));
    } finally {
      if (limit.activeCount + limit.pendingCount === 0) this.#groups.delete(group);
    }
  }
}
