import { type Clock, runTime, type Timer } from '../base/clock.ts';

/** The platform's timers are limited to about 24 days; a longer wait is split. */
const STEP_MS = 24 * 60 * 60 * 1_000;

/** A timer that can be paused: the time left at the pause is left at the resume. */
class PausableTimer {
  readonly #clock: Clock;
  readonly #run: () => void;
  #left_ms: number;
  #since_ms: number | null = null;
  #timer: Timer | null = null;
  #is_over = false;

  /** With `paused` it starts with `resume`. */
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

/** The timers of one process, paused and resumed together. */
export class TimerSet {
  readonly #clock: Clock;
  readonly #isPaused: () => boolean;
  readonly #timers = new Set<PausableTimer>();

  /** `isPaused` is asked for each new timer: if it gives true, the timer starts paused. */
  constructor(clock: Clock, isPaused: () => boolean) {
    this.#clock = clock;
    this.#isPaused = isPaused;
  }

  /** Calls `run` once after `delay_ms`, pauses not counted. */
  after(delay_ms: number, run: () => void): Timer {
    return this.#start(this.#clock, delay_ms, run);
  }

  /** As `after`, for a limit of what others may take: time in which this program was stopped is not counted either. */
  limit(delay_ms: number, run: () => void): Timer {
    return this.#start(runTime(this.#clock), delay_ms, run);
  }

  #start(clock: Clock, delay_ms: number, run: () => void): Timer {
    const finish = () => {
      this.#timers.delete(timer);
      run();
    };
    const timer = new PausableTimer(clock, delay_ms, finish, this.#isPaused());
    this.#timers.add(timer);
    return {
      cancel: () => {
        timer.cancel();
        this.#timers.delete(timer);
      },
    };
  }

  /** Pauses every timer. */
  pause(): void {
    for (const timer of this.#timers) timer.pause();
  }

  /** Resumes every timer. */
  resume(): void {
    for (const timer of this.#timers) timer.resume();
  }
}
