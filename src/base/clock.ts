import { uptime } from 'node:os';
import { readBootId } from './linux/procfs.ts';

/** The only source of time and timers, so that tests can control both. */
export interface Clock {
  /** Wall time in ms since the epoch: for people and for the wire, never for schedules. */
  wallMs(): number;
  /** Monotonic time in ms from an arbitrary start: for schedules and durations. */
  monotonicMs(): number;
  /** The machine's boot and the time since: keeps counting across process restarts and changes of the wall clock. */
  boot(): Boot;
  /** Calls `run` once after `delay_ms`; the timer does not keep the process alive. */
  after(delay_ms: number, run: () => void): Timer;
}

/** One boot of the machine. */
export interface Boot {
  /** The kernel's boot id; empty if the platform has none. */
  id: string;
  /** Milliseconds since the boot, including time in suspend. */
  ms: number;
}

/** A timer that has been started and not yet fired. */
export interface Timer {
  /** Prevents the call; has no effect once it has fired. */
  cancel(): void;
}

/** The longest delay of a platform timer, in ms. Longer delays are cut: callers must check the time again. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** How long a reading of the boot clock is reused: the monotonic clock, which stops in suspend, covers the rest. */
const BOOT_CHECK_MS = 1_000;

let boot: { id: string; ms: number; at_ms: number } | null = null;

/** The machine's clock. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  wallMs: () => Date.now(),
  // Not performance.now(): its origin differs from thread to thread.
  monotonicMs: () => Number(process.hrtime.bigint()) / 1e6,
  boot() {
    const now_ms = systemClock.monotonicMs();
    if (boot === null || now_ms - boot.at_ms >= BOOT_CHECK_MS) {
      boot = { id: boot?.id ?? readBootId(), ms: uptime() * 1_000, at_ms: now_ms };
    }
    return { id: boot.id, ms: boot.ms + now_ms - boot.at_ms };
  },
  after(delay_ms, run) {
    const timer = setTimeout(run, Math.min(Math.max(0, delay_ms), TIMER_MAX_MS)).unref();
    return { cancel: () => clearTimeout(timer) };
  },
};

/** The machine's clock for waits in the middle of work: its timers keep the process alive. */
export const workingClock: Clock = {
  ...systemClock,
  after(delay_ms, run) {
    const timer = setTimeout(run, delay_ms);
    return { cancel: () => clearTimeout(timer) };
  },
};

/** How often it is checked, while something waits, that this program runs. */
const BEAT_MS = 1_000;
/** A timer that is later than this was held up by a program that did not run, not by a busy one. */
export const LATE_MS = 1_000;
/** After such a stop a wait that would be over gets its full time once more, up to this. */
const GRACE_MAX_MS = 15_000;

const clocks = new WeakMap<Clock, RunTime>();

/**
 * The time in which this program could run, for everything that waits for somebody else: time during which it was stopped,
 * or its control group or machine was frozen, does not pass. Not for what is due at a real time. Source: contract section
 * 3, Clock.
 */
export function runTime(clock: Clock): Clock {
  let found = clocks.get(clock);
  if (!found) {
    found = new RunTime(clock);
    clocks.set(clock, found);
  }
  return found;
}

/**
 * A clock without the stops of this program. A stop is noticed by a timer that is late; while something waits there is one
 * every second, so at most a second of each stop counts. A wait that ends in a stop begins again, once: what it waits for
 * may have happened meanwhile, and timers run before it is read.
 */
class RunTime implements Clock {
  readonly #clock: Clock;
  #stopped_ms = 0;
  #waits = 0;
  #beat: Timer | null = null;
  /** When this program runs next at the latest, by the machine's clock. */
  #due_ms = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  wallMs(): number {
    return this.#clock.wallMs();
  }

  boot(): Boot {
    return this.#clock.boot();
  }

  monotonicMs(): number {
    return this.#now() - this.#stopped_ms;
  }

  after(delay_ms: number, run: () => void): Timer {
    const began_ms = this.#begin();
    let end_ms = began_ms - this.#stopped_ms + Math.max(0, delay_ms);
    let due_ms = 0;
    let has_grace = false;
    let is_over = false;
    let seen_ms = 0;
    const arm = (now_ms: number) => {
      seen_ms = this.#stopped_ms;
      due_ms = end_ms + seen_ms;
      return this.#clock.after(due_ms - now_ms, fire);
    };
    const fire = () => {
      const now_ms = this.#now();
      const run_ms = now_ms - this.#stopped_ms;
      if (now_ms - due_ms > LATE_MS && !has_grace) {
        has_grace = true;
        end_ms = Math.max(end_ms, run_ms + Math.min(delay_ms, GRACE_MAX_MS));
      }
      const is_short = this.#stopped_ms > seen_ms || has_grace || delay_ms > TIMER_MAX_MS;
      // The platform's timers may be a little early.
      if (is_short && end_ms - run_ms > 1) {
        timer = arm(now_ms);
        return;
      }
      end();
      run();
    };
    const end = () => {
      if (is_over) return;
      is_over = true;
      timer.cancel();
      this.#end();
    };
    let timer = arm(began_ms);
    return { cancel: end };
  }

  /** The machine's time, after a look whether this program was stopped. */
  #now(): number {
    const now_ms = this.#clock.monotonicMs();
    if (this.#beat && now_ms - this.#due_ms > LATE_MS) {
      this.#stopped_ms += now_ms - this.#due_ms;
      this.#due_ms = now_ms;
    }
    return now_ms;
  }

  #begin(): number {
    const now_ms = this.#now();
    this.#waits += 1;
    if (!this.#beat) this.#watch(now_ms);
    return now_ms;
  }

  #end(): void {
    this.#waits -= 1;
    if (this.#waits > 0) return;
    this.#beat?.cancel();
    this.#beat = null;
  }

  #watch(now_ms: number): void {
    this.#due_ms = now_ms + BEAT_MS;
    this.#beat = this.#clock.after(BEAT_MS, () => this.#watch(this.#now()));
  }
}

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

/** Resolves once `work` has ended, or after `delay_ms`; until then it rejects as `work` does. */
export async function atMost(clock: Clock, delay_ms: number, work: Promise<unknown>): Promise<void> {
  const over = new AbortController();
  try {
    await Promise.race([work, sleep(clock, delay_ms, over.signal)]);
  } finally {
    over.abort();
  }
}

const DAY_MS = 24 * 60 * 60 * 1000;
/** The end of the year 9999, in ms since the epoch. */
const END_MS = 253_402_300_800_000;
/** From 1 March of the year 0 to 1 January 1970. */
const EPOCH_DAYS = 719_468;

/** The last result: events of the same millisecond need the same text several times. */
let stamped = { wall_ms: Number.NaN, text: '' };
let dated = { days: Number.NaN, text: '' };

/**
 * Formats a wall time in ms since the epoch as RFC 3339 in UTC with milliseconds. Throws where there is no such time. The
 * usual ones are formatted without `Date`, which loads the time zones for it, a megabyte.
 */
export function timestamp(wall_ms: number): string {
  if (stamped.wall_ms !== wall_ms) {
    const is_usual = wall_ms >= 0 && wall_ms < END_MS;
    stamped = { wall_ms, text: is_usual ? formatted(wall_ms) : new Date(wall_ms).toISOString() };
  }
  return stamped.text;
}

function formatted(wall_ms: number): string {
  const days = Math.floor(wall_ms / DAY_MS);
  if (dated.days !== days) dated = { days, text: dateOf(days) };
  const ms = Math.floor(wall_ms % DAY_MS);
  const [hours, minutes, seconds] = [ms / 3_600_000, (ms / 60_000) % 60, (ms / 1_000) % 60];
  return `${dated.text}T${digits(hours)}:${digits(minutes)}:${digits(seconds)}.${digits(ms % 1_000, 3)}Z`;
}

/** The date of a day since the epoch. Its years begin in March, so that a leap day is the last of its year. */
function dateOf(days: number): string {
  const since = days + EPOCH_DAYS;
  // The calendar repeats every 400 years, of 146 097 days.
  const cycle = Math.floor(since / 146_097);
  const day = since % 146_097;
  const leaps = Math.floor(day / 1_460) - Math.floor(day / 36_524) + Math.floor(day / 146_096);
  const year = Math.floor((day - leaps) / 365);
  const day_of_year = day - 365 * year - Math.floor(year / 4) + Math.floor(year / 100);
  // Any five months from March on have 153 days.
  const month = Math.floor((5 * day_of_year + 2) / 153);
  const day_of_month = day_of_year - Math.floor((153 * month + 2) / 5) + 1;
  const is_next_year = month >= 10;
  const full_year = 400 * cycle + year + (is_next_year ? 1 : 0);
  return `${digits(full_year, 4)}-${digits(is_next_year ? month - 9 : month + 3)}-${digits(day_of_month)}`;
}

function digits(value: number, length = 2): string {
  return String(Math.floor(value)).padStart(length, '0');
}
