/** What a sandbox is, as far as its team was told; `unknown` while an answer is missing. */
export type Told = 'running' | 'paused' | 'gone' | 'unknown';

/** A sandbox as the one who asked for it knows it: what was acknowledged must hold, whatever has failed. */
export class Tracked {
  readonly id: string;
  /** It is paused or ended by its own time. */
  readonly has_ttl: boolean;
  told: Told;
  /** The payload of each acknowledged publish, by the event's id. */
  readonly acknowledged = new Map<string, object>();
  /** Pauses that were asked for, answered or not: so many gaps may be between its usage windows. */
  pauses = 0;
  /** When it was last asked for something or answered. */
  touched_ms = performance.now();
  /** The database was put back to a time before that: what was acknowledged of it may be lost. */
  is_put_back = false;
  /** It was gone when the database was put back to a time before it: nobody knows of it. */
  is_forgotten = false;
  /** How long it ran for certain, and at most, in ms. */
  certain_ms = 0;
  possible_ms = 0;
  #certain_since_ms: number | null = null;
  #possible_since_ms: number | null = null;

  constructor(id: string, told: 'running' | 'paused', asked_ms: number, has_ttl: boolean) {
    this.id = id;
    this.has_ttl = has_ttl;
    this.told = told;
    if (has_ttl) this.pauses = 1;
    if (told === 'running') this.ran(asked_ms);
  }

  /** It was asked for something that may end its running. */
  mayStop(asked_ms: number): void {
    if (this.#certain_since_ms !== null) this.certain_ms += asked_ms - this.#certain_since_ms;
    this.#certain_since_ms = null;
    this.pauses += 1;
    this.#changes('unknown');
  }

  /** It does not run, says an answer. */
  stopped(told: 'paused' | 'gone'): void {
    if (this.#possible_since_ms !== null) this.possible_ms += performance.now() - this.#possible_since_ms;
    this.#possible_since_ms = null;
    this.#changes(told);
  }

  /** It was asked to run. */
  mayRun(asked_ms: number): void {
    this.#possible_since_ms ??= asked_ms;
    this.#changes('unknown');
  }

  /** It runs, says an answer. */
  ran(asked_ms: number): void {
    this.#possible_since_ms ??= asked_ms;
    if (!this.has_ttl) this.#certain_since_ms ??= performance.now();
    this.#changes('running');
  }

  #changes(told: Told): void {
    this.told = told;
    this.touched_ms = performance.now();
  }
}
