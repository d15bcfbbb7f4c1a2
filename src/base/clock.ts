/** The only source of time and timers, so that a test can own both. */
export interface Clock {
  /** Wall time in ms since the epoch: for people and for the wire, never for schedules. */
  wallMs(): number;
  /** Monotonic time in ms from an arbitrary start: for schedules and durations. */
  monotonicMs(): number;
  /** Calls `run` once after `delay_ms`; the timer does not keep the process alive. */
  after(delay_ms: number, run: () => void): Timer;
}

export interface Timer {
  cancel(): void;
}

/** The longest delay that one platform timer takes. A longer one is cut; whoever waits looks at the time again. */
const TIMER_MAX_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  wallMs: () => Date.now(),
  // Not performance.now(): its origin differs from thread to thread.
  monotonicMs: () => Number(process.hrtime.bigint()) / 1e6,
  after(delay_ms, run) {
    const timer = setTimeout(run, Math.min(Math.max(0, delay_ms), TIMER_MAX_MS)).unref();
    return { cancel: () => clearTimeout(timer) };
  },
};

/** The same, for a wait in the middle of work: its timers keep the process alive. */
export const workingClock: Clock = {
  ...systemClock,
  after(delay_ms, run) {
    const timer = setTimeout(run, delay_ms);
    return { cancel: () => clearTimeout(timer) };
  },
};

/** Resolves after `delay_ms`, or at once when `signal` aborts. */
export function sleep(clock: Clock, delay_ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      timer.cancel();
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = clock.after(delay_ms, done);
    signal?.addEventListener('abort', done);
  });
}

/** The last that was asked for: what happens at once is stamped several times. */
let stamped = { wall_ms: Number.NaN, text: '' };

/** RFC 3339 UTC with milliseconds. */
export function timestamp(wall_ms: number): string {
  if (stamped.wall_ms !== wall_ms) stamped = { wall_ms, text: new Date(wall_ms).toISOString() };
  return stamped.text;
}
