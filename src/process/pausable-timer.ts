import type { Clock, Timer } from '../base/clock.ts';

/** The platform's timers take about 24 days; a longer wait is made of several. */
const STEP_MS = 24 * 60 * 60 * 1_000;

/** A timer that can stand still: what is left when it is paused is left when it is resumed. */
class PausableTimer {
  readonly #clock: Clock;
  readonly #run: () => void;
  #left_ms: number;
  #since_ms: number | null = null;
  #timer: Timer | null = null;
  #is_over = false;

  /** `paused`: it does not begin to run before `resume`. */
  constructor(clock: Clock, delay_ms: number, run: () => void, paused = false) {
    this.#clock = clock;
    this.#left_ms = delay_ms;
    this.#run = run;
    if (!paused) this.resume();
  }

  pause(): void {
    this.#timer?.cancel();
    if (this.#since_ms !== null) this.#left_ms -= this.#clock.monotonicMs() - this.#since_ms;
    this.#since_ms = null;
  }

  resume(): void {
    if (this.#is_over || this.#since_ms !== null) return;
    this.#since_ms = this.#clock.monotonicMs();
    this.#timer = this.#clock.after(Math.min(this.#left_ms, STEP_MS), () => {
      this.pause();
      if (this.#left_ms > 0) return this.resume();
      this.#is_over = true;
      this.#run();
    });
  }

  cancel(): void {
    this.#timer?.cancel();
    this.#is_over = true;
  }
}

/** The timers of one process: they stand still together. */
export class TimerSet {
  readonly #clock: Clock;
  readonly #isPaused: () => boolean;
  readonly #timers = new Set<PausableTimer>();

  /** `isPaused` tells whether a timer that is made now stands still at first. */
  constructor(clock: Clock, isPaused: () => boolean) {
    this.#clock = clock;
    this.#isPaused = isPaused;
  }

  /** Calls `run` once after `delay_ms` of time that is not paused. */
  after(delay_ms: number, run: () => void): Timer {
    const finish = () => {
      this.#timers.delete(timer);
      run();
    };
    const timer = new PausableTimer(this.#clock, delay_ms, finish, this.#isPaused());
    this.#timers.add(timer);
    return {
      cancel: () => {
        timer.cancel();
        this.#timers.delete(timer);
      },
    };
  }

  pause(): void {
    for (const timer of this.#timers) timer.pause();
  }

  resume(): void {
    for (const timer of this.#timers) timer.resume();
  }
}
