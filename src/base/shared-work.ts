/**
 * Work that many ask for, such as the reading of a table: one piece of it is under way at a time, and who asks meanwhile
 * shares the next one, which begins after the call.
 */
export class SharedWork<Result> {
  #present: Promise<Result> | null = null;
  #next: Promise<Result> | null = null;

  /** What is under way, and has perhaps begun before the call; null if nothing is. */
  get present(): Promise<Result> | null {
    return this.#present;
  }

  /** Work that begins after the call: that of `work`, or of somebody who has asked since the present one began. */
  run(work: () => Promise<Result>): Promise<Result> {
    if (this.#next !== null) return this.#next;
    if (this.#present === null) return this.#begin(work);
    const begin = () => {
      this.#next = null;
      return this.#begin(work);
    };
    this.#next = this.#present.then(begin, begin);
    return this.#next;
  }

  #begin(work: () => Promise<Result>): Promise<Result> {
    this.#present = work().finally(() => {
      this.#present = null;
    });
    return this.#present;
  }
}
