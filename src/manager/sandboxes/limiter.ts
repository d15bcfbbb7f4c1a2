/**
 * Limits concurrent tasks, in all and within each group, so that the slow tasks of one group leave slots to the others.
 * Waiting tasks start in order.
 */
export class Limiter {
  readonly #max: number;
  readonly #group_max: number;
  readonly #waiting: { group: string; start: () => void }[] = [];
  readonly #running = new Map<string, number>();
  #total = 0;

  constructor(max: number, group_max: number) {
    this.#max = max;
    this.#group_max = group_max;
  }

  /** Runs `task` once there is a slot; resolves or rejects as it does. */
  async run<Result>(group: string, task: () => Promise<Result>): Promise<Result> {
    if (this.#hasSlot(group)) this.#acquire(group);
    else await new Promise<void>((resolve) => this.#waiting.push({ group, start: resolve }));
    try {
      return await task();
    } finally {
      this.#release(group);
    }
  }

  #hasSlot(group: string): boolean {
    return this.#total < this.#max && (this.#running.get(group) ?? 0) < this.#group_max;
  }

  #acquire(group: string): void {
    this.#total += 1;
    this.#running.set(group, (this.#running.get(group) ?? 0) + 1);
  }

  #release(group: string): void {
    this.#total -= 1;
    const left = (this.#running.get(group) ?? 0) - 1;
    if (left > 0) this.#running.set(group, left);
    else this.#running.delete(group);
    const next = this.#waiting.findIndex((waiting) => this.#hasSlot(waiting.group));
    const [first] = next < 0 ? [] : this.#waiting.splice(next, 1);
    if (!first) return;
    this.#acquire(first.group);
    first.start();
  }
}
