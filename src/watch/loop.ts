import type { Clock, Timer } from '../base/clock.ts';
import { BLOCKED_RETRY_MS } from './index/limits.ts';

/** `more`: go on at once. `idle`: nothing is due. `blocked`: try again after a while. */
export type PassResult = 'more' | 'idle' | 'blocked';

interface LoopOptions {
  clock: Clock;
  step: () => Promise<PassResult>;
  /** When something is due next, in monotonic ms; null where nothing is pending. */
  nextDueMs: () => number | null;
  /** Called whenever the loop comes to rest. */
  onRest: (result: PassResult) => void;
}

/** Runs steps one at a time while something is due, and sets one timer for what is due later. */
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

  /** To be called when something new may be due. */
  schedule(): void {
    if (this.#stopped || this.#running || this.#blocked) return;
    const due_ms = this.#options.nextDueMs();
    if (due_ms === null || due_ms >= this.#timer_due_ms) return;
    this.#wait(due_ms - this.#options.clock.monotonicMs(), due_ms);
  }

  /** Returns when the step under way has ended; none follows. */
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
      // Not in this turn: what the first step sets off must find the loop running.
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
