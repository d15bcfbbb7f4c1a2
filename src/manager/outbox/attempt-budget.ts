import { ATTEMPTS_MAX } from '../../contract/defaults.ts';

/** Endpoints whose last attempt failed have so many attempts among all: the dead leave room for the living. */
const FAILING_MAX = ATTEMPTS_MAX / 2;

/** What one endpoint uses of the attempts that may be under way. */
export class EndpointLoad {
  under_way = 0;
  is_failing = false;
}

/**
 * How many attempts may be under way in all, shared so that no endpoint waits for another: one may have as many as
 * are still free, so that there is always room for those that have none. Source: contract section 7.
 */
export class AttemptBudget {
  readonly #max: number;
  #under_way = 0;
  #failing = 0;
  /** Those that were told no, in their order. */
  readonly #waiting = new Map<EndpointLoad, () => void>();

  constructor(max = ATTEMPTS_MAX) {
    this.#max = max;
  }

  get under_way(): number {
    return this.#under_way;
  }

  /**
   * Whether an endpoint may begin one more; if not, `again` is called when that may have changed. `may_any`: whether
   * attempts may begin at all.
   */
  mayStart(use: EndpointLoad, may_any: boolean, again: () => void): boolean {
    const free = this.#max - this.#under_way;
    const may = may_any && free > use.under_way && !(use.is_failing && this.#failing >= FAILING_MAX);
    if (!may) this.#waiting.set(use, again);
    return may;
  }

  /** Begins an attempt; returns what ends it. */
  begin(use: EndpointLoad): () => void {
    const is_failing = use.is_failing;
    this.#add(use, 1, is_failing);
    return () => {
      this.#add(use, -1, is_failing);
      // After what belongs to the attempt that ended: its endpoint may go on first.
      if (this.#waiting.size > 0) setImmediate(() => this.wake());
    };
  }

  #add(use: EndpointLoad, by: 1 | -1, is_failing: boolean): void {
    this.#under_way += by;
    use.under_way += by;
    if (is_failing) this.#failing += by;
  }

  /** Lets those that wait look again. */
  wake(): void {
    for (const [use, again] of [...this.#waiting]) {
      if (this.#under_way >= this.#max) return;
      this.#waiting.delete(use);
      again();
    }
  }

  /** Forgets an endpoint that is gone. */
  forget(use: EndpointLoad): void {
    this.#waiting.delete(use);
  }
}
