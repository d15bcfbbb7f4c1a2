import type { Boot, Clock, Timer } from './clock.ts';

/** How often it is checked, while something waits, that this program runs. */
const BEAT_MS = 1_000;
/** A timer that is later than this was held up by a program that did not run, not by a busy one. */
const LATE_MS = 1_000;
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
    const arm = (now_ms: number) => {
      due_ms = end_ms + this.#stopped_ms;
      return this.#clock.after(due_ms - now_ms, fire);
    };
    const fire = () => {
      const now_ms = this.#now();
      const run_ms = now_ms - this.#stopped_ms;
      if (now_ms - due_ms > LATE_MS && !has_grace) {
        has_grace = true;
        end_ms = Math.max(end_ms, run_ms + Math.min(delay_ms, GRACE_MAX_MS));
      }
      // The platform's timers may be a little early.
      if (end_ms - run_ms > 1) {
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
