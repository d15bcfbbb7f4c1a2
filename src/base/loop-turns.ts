/**
 * Work that takes milliseconds, of which each turn of the event loop does one piece: whoever asks for little waits for one of
 * them, and not for all that are there. Pieces are done in the order in which they came.
 */
export class LoopTurns {
  readonly #waiting: (() => void)[] = [];
  readonly #onIdle: () => void;
  #is_taken = false;

  /** `onIdle` is called after a turn for which nothing was waiting. */
  constructor(onIdle: () => void = () => {}) {
    this.#onIdle = onIdle;
  }

  /** Does a piece of work: at once if this turn has done none yet. */
  take(work: () => void): void {
    if (this.#is_taken) {
      this.#waiting.push(work);
      return;
    }
    this.#begin();
    work();
  }

  /** Resolves when the caller may do a piece of work: at once if this turn has done none yet. */
  taken(): Promise<void> {
    return new Promise((resolve) => this.take(resolve));
  }

  /** Resolves in a later turn, when the caller may do a piece of work. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (!this.#is_taken) this.#begin();
    });
  }

  #begin(): void {
    this.#is_taken = true;
    setImmediate(this.#proceed);
  }

  readonly #proceed = (): void => {
    const work = this.#waiting.shift();
    if (!work) {
      this.#is_taken = false;
      this.#onIdle();
      return;
    }
    setImmediate(this.#proceed);
    work();
  };
}

/** The turns of this thread's event loop. */
export const turns = new LoopTurns();
