import type { Clock, Timer } from '../base/clock.ts';
import { BLOCKED_RETRY_MS } from './index/limits.ts';

/** The result of a pass. `more`: run the next at once. `idle`: nothing is due. `blocked`: retry after `BLOCKED_RETRY_MS`. */
export type PassResult = 'more' | 'idle' | 'blocked';

interface LoopOptions {
  clock: Clock;
  /** Runs one pass. */
  step: () => Promise<PassResult>;
  /** When the next work is due, in monotonic ms; null if nothing is pending. */
  nextDueMs: () => number | null;
  /** Called when no work is due at the moment, or the outbox accepts nothing. */
  onRest: (result: PassResult) => void;
}

/**
 * Runs passes one at a time while work is due, and keeps one timer for work that is due later.
 *
 * | State | Meaning | Left when |
 * |---|---|---|
 * | resting | no work is due; there is a timer if some is due later | the timer fires: running |
 * | running | passes run one after another | a pass returns `idle`: resting; `blocked`: blocked |
 * | blocked | the outbox accepts nothing; `schedule` is ignored | after `BLOCKED_RETRY_MS`: running |
 * | stopped | the last pass has ended or is ending | never |
 */
export class Loop {
  readonly #options: LoopOptions;
  #running: Promise<void> | null = null;
  #timer: Timer | null = null;
  #timer_due_ms = Number.POSITIVE_INFINITY;
  #blocked = false;
  #stopped = false;

  constructor(options: LoopOptions) {
    this.#options = options;
  }

  /** Must be called when new work may be due. */
  schedule(): void {
    if (this.#stopped || this.#running || this.#blocked) return;
    const due_ms = this.#options.nextDueMs();
    if (due_ms === null || due_ms >= this.#timer_due_ms) return;
    this.#wait(due_ms - this.#options.clock.monotonicMs(), due_ms);
  }

  /** Stops the loop; resolves when the pass in progress has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#running;
  }

  #wait(delay_ms: number, due_ms: number): void {
    this.#timer?.cancel();
    this.#timer_due_ms = due_ms;
    this.#timer = this.#options.clock.after(delay_ms, () => {
      this.#timer = null;
      this.#timer_due_ms = Number.POSITIVE_INFINITY;
      this.#blocked = false;
      // Starts in a microtask, so that `schedule` calls made by the first step find the loop running.
      this.#running = Promise.resolve().then(() => this.#run());
    });
  }

  async #run(): Promise<void> {
    let result: PassResult = 'more';
    while (result === 'more' && !this.#stopped) result = await this.#options.step();
    this.#running = null;
    if (this.#stopped) return;
    this.#options.onRest(result);
    if (result === 'blocked') {
      this.#blocked = true;
      this.#wait(BLOCKED_RETRY_MS, 0);
    } else {
      this.schedule();
    }
  }
}
