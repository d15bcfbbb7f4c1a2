import { type Clock, runTime, sleep, type Timer } from '../../base/clock.ts';

/** A call that takes longer is a reason to check whether the database answers at all. */
const LOOK_MS = 600;
/** A database that takes longer for an empty query is considered lost. */
const PROBE_MS = 800;
/** Pause between checks of a lost database. */
const LOST_LOOK_MS = 250;

/**
 * Distinguishes a database that does not answer from one that is busy. Calls to the first fail within 2 s; calls to
 * the second, including those that wait for a lock, keep waiting.
 *
 * | State | Entered when | Left when |
 * |---|---|---|
 * | available | the watch is made; a probe succeeds | a call has waited `LOOK_MS` |
 * | checking | a call has waited `LOOK_MS` | the probe answers (available) or not (lost) |
 * | lost | a probe fails or takes `PROBE_MS`; waiting calls are rejected | a later probe succeeds (available) |
 */
export class DatabaseWatch {
  readonly #clock: Clock;
  readonly #probe: () => Promise<void>;
  readonly #waiting = new Set<{ since_ms: number; reject: (error: Error) => void }>();
  #timer: Timer | null = null;
  #is_lost = false;
  #is_looking = false;
  #is_closed = false;

  /** `probe` runs an empty query; it may hang. */
  constructor(clock: Clock, probe: () => Promise<void>) {
    this.#clock = clock;
    this.#probe = probe;
  }

  /**
   * Runs a call to the database. Rejects if the database is lost before the call returns, although the call may still
   * take effect. While the database is known to be lost the call is not made, unless `always` is set.
   */
  async run<Result>(work: () => Promise<Result>, always = false): Promise<Result> {
    if (this.#is_lost && !always) throw doesNotAnswer();
    const { promise: lost, reject } = Promise.withResolvers<never>();
    const entry = { since_ms: this.#clock.monotonicMs(), reject };
    this.#waiting.add(entry);
    if (this.#is_lost) reject(doesNotAnswer());
    else this.#schedule();
    const working = work();
    working.catch(() => {});
    try {
      return await Promise.race([working, lost]);
    } finally {
      this.#waiting.delete(entry);
    }
  }

  /** Stops checking. */
  close(): void {
    this.#is_closed = true;
    this.#timer?.cancel();
  }

  /** Schedules a check for when the oldest call has waited too long. */
  #schedule(): void {
    if (this.#timer || this.#is_looking || this.#is_closed) return;
    const [oldest] = this.#waiting;
    if (!oldest) return;
    const delay_ms = oldest.since_ms + LOOK_MS - this.#clock.monotonicMs();
    this.#timer = this.#clock.after(delay_ms, () => {
      this.#timer = null;
      void this.#look();
    });
  }

  async #look(): Promise<void> {
    const [oldest] = this.#waiting;
    if (oldest && this.#clock.monotonicMs() - oldest.since_ms >= LOOK_MS) {
      this.#is_looking = true;
      while (!this.#is_closed && !(await this.#answers())) {
        this.#is_lost = true;
        for (const { reject } of this.#waiting) reject(doesNotAnswer());
        await sleep(this.#clock, LOST_LOOK_MS);
      }
      this.#is_lost = false;
      this.#is_looking = false;
      // Calls that keep waiting are checked again after the same time.
      const now_ms = this.#clock.monotonicMs();
      for (const entry of this.#waiting) entry.since_ms = now_ms;
    }
    this.#schedule();
  }

  async #answers(): Promise<boolean> {
    const { promise: late, resolve } = Promise.withResolvers<boolean>();
    const timer = runTime(this.#clock).after(PROBE_MS, () => resolve(false));
    const answered = this.#probe().then(
      () => true,
      () => false,
    );
    const answers = await Promise.race([answered, late]);
    timer.cancel();
    return answers;
  }
}

function doesNotAnswer(): Error {
  return new Error('timeout: the database does not answer');
}
