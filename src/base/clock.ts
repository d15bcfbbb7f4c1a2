import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';

/** The only source of time and timers, so that a test can own both. */
export interface Clock {
  /** Wall time in ms since the epoch: for people and for the wire, never for schedules. */
  wallMs(): number;
  /** Monotonic time in ms from an arbitrary start: for schedules and durations. */
  monotonicMs(): number;
  /** The boot of the machine, and how long ago it was: goes on over every process's end, whatever the wall clock does. */
  boot(): Boot;
  /** Calls `run` once after `delay_ms`; the timer does not keep the process alive. */
  after(delay_ms: number, run: () => void): Timer;
}

/** `id` is the boot's own, empty where the platform tells none; `ms` is the time since. */
export interface Boot {
  id: string;
  ms: number;
}

export interface Timer {
  cancel(): void;
}

/** The longest delay that one platform timer takes. A longer one is cut; whoever waits looks at the time again. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** How long the difference of the boot's clock and the monotonic one, which stands still in a suspended machine, is taken for the same. */
const BOOT_CHECK_MS = 1_000;

let boot: { id: string; ms: number; at_ms: number } | null = null;

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  } catch {
    return '';
  }
}

export const systemClock: Clock = {
  wallMs: () => Date.now(),
  // Not performance.now(): its origin differs from thread to thread.
  monotonicMs: () => Number(process.hrtime.bigint()) / 1e6,
  boot() {
    const now_ms = systemClock.monotonicMs();
    if (boot === null || now_ms - boot.at_ms >= BOOT_CHECK_MS) {
      boot = { id: boot?.id ?? bootId(), ms: uptime() * 1_000, at_ms: now_ms };
    }
    return { id: boot.id, ms: boot.ms + now_ms - boot.at_ms };
  },
  after(delay_ms, run) {
    const timer = setTimeout(run, Math.min(Math.max(0, delay_ms), TIMER_MAX_MS)).unref();
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
