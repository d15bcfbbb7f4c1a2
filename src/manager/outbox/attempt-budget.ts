import { ATTEMPTS_MAX } from '../../contract/defaults.ts';

/** Attempts that all failing endpoints may use together, so that dead endpoints leave room for live ones. */
const FAILING_MAX = ATTEMPTS_MAX / 2;

/** One endpoint's share of the running attempts, and whether its last attempt failed. */
export class EndpointLoad {
  under_way = 0;
  is_failing = false;
}

/**
 * Limits the attempts that run at the same time, shared so that no endpoint starves: an endpoint may use as many
 * attempts as are still free, so that some always remain for endpoints that have none. Source: contract section 7.
 */
export class AttemptBudget {
  readonly #max: number;
  #under_way = 0;
  #failing = 0;
  /** Refused endpoints, in the order of their requests. */
  readonly #waiting = new Map<EndpointLoad, () => void>();

  constructor(max = ATTEMPTS_MAX) {
    this.#max = max;
  }

  /** The number of running attempts. */
  get under_way(): number {
    return this.#under_way;
  }

  /**
   * Whether an endpoint may start one more attempt. If not, `onFree` is called once when that may have changed.
   * `may_any`: whether attempts may start at all.
   */
  mayStart(load: EndpointLoad, may_any: boolean, onFree: () => void): boolean {
    const free = this.#max - this.#under_way;
    const may = may_any && free > load.under_way && !(load.is_failing && this.#failing >= FAILING_MAX);
    if (!may) this.#waiting.set(load, onFree);
    return may;
  }

  /** Starts an attempt; the returned function ends it and must be called once. */
  begin(load: EndpointLoad): () => void {
    const is_failing = load.is_failing;
    this.#add(load, 1, is_failing);
    return () => {
      this.#add(load, -1, is_failing);
      // Deferred, so that the endpoint of the attempt that ended may start its next one first.
      if (this.#waiting.size > 0) setImmediate(() => this.wake());
    };
  }

  #add(load: EndpointLoad, by: 1 | -1, is_failing: boolean): void {
    this.#under_way += by;
    load.under_way += by;
    if (is_failing) this.#failing += by;
  }

  /** Calls back waiting endpoints while attempts are free. */
  wake(): void {
    for (const [load, onFree] of [...this.#waiting]) {
      if (this.#under_way >= this.#max) return;
      this.#waiting.delete(load);
      onFree();
    }
  }

  /** Removes an endpoint from those that wait. */
  forget(load: EndpointLoad): void {
    this.#waiting.delete(load);
  }
}
