/**
 * Lets some works run at once; the others wait in their order. Of each group only some run at once, so that works of
 * one group that take long leave places for the others.
 */
export class Limiter {
  readonly #max: number;
  readonly #group_max: number;
  readonly #waiting: { group: string; begin: () => void }[] = [];
  readonly #running = new Map<string, number>();
  #total = 0;

  constructor(max: number, group_max: number) {
    this.#max = max;
    this.#group_max = group_max;
  }

  async run<Result>(group: string, work: () => Promise<Result>): Promise<Result> {
    if (this.#hasPlace(group)) this.#take(group);
    else await new Promise<void>((resolve) => this.#waiting.push({ group, begin: resolve }));
    try {
      return await work();
    } finally {
      this.#leave(group);
    }
  }

  #hasPlace(group: string): boolean {
    return this.#total < this.#max && (this.#running.get(group) ?? 0) < this.#group_max;
  }

  #take(group: string): void {
    this.#total += 1;
    this.#running.set(group, (this.#running.get(group) ?? 0) + 1);
  }

  #leave(group: string): void {
    this.#total -= 1;
    const left = (this.#running.get(group) ?? 0) - 1;
    if (left > 0) this.#running.set(group, left);
    else this.#running.delete(group);
    const next = this.#waiting.findIndex((waiting) => this.#hasPlace(waiting.group));
    const [first] = next < 0 ? [] : this.#waiting.splice(next, 1);
    if (!first) return;
    this.#take(first.group);
    first.begin();
  }
}
