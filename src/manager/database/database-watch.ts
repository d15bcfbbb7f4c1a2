import { type Clock, sleep, type Timer } from '../../base/clock.ts';

/** Something that takes longer is a reason to look whether the database answers at all. */
const LOOK_MS = 600;
/** A database that takes longer for nothing does not answer. */
const PROBE_MS = 800;
/** How often one that is lost is looked for. */
const LOST_LOOK_MS = 250;

/**
 * Tells a database that does not answer from one that has much to do: whoever waits for the first is told within 2 s,
 * whoever waits for the second, or for a lock in it, waits on.
 */
export class DatabaseWatch {
  readonly #clock: Clock;
  readonly #probe: () => Promise<void>;
  readonly #waiting = new Set<{ since_ms: number; giveUp: (error: Error) => void }>();
  #timer: Timer | null = null;
  #is_lost = false;
  #is_looking = false;
  #is_closed = false;

  /** `probe` asks the database for nothing; it may hang. */
  constructor(clock: Clock, probe: () => Promise<void>) {
    this.#clock = clock;
    this.#probe = probe;
  }

  /**
   * Does something with the database. Rejects where that is lost meanwhile, although it may still be done; where it is
   * known to be lost it is not asked at all, unless `always`.
   */
  async run<Result>(work: () => Promise<Result>, always = false): Promise<Result> {
    if (this.#is_lost && !always) throw doesNotAnswer();
    const { promise: lost, reject: giveUp } = Promise.withResolvers<never>();
    const entry = { since_ms: this.#clock.monotonicMs(), giveUp };
    this.#waiting.add(entry);
    if (this.#is_lost) giveUp(doesNotAnswer());
    else this.#schedule();
    const working = work();
    working.catch(() => {});
    try {
      return await Promise.race([working, lost]);
    } finally {
      this.#waiting.delete(entry);
    }
  }

  /** Looks no more. */
  close(): void {
    this.#is_closed = true;
    this.#timer?.cancel();
  }

  /** Looks when the one that has waited longest has waited too long. */
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
        for (const { giveUp } of this.#waiting) giveUp(doesNotAnswer());
        await sleep(this.#clock, LOST_LOOK_MS);
      }
      this.#is_lost = false;
      this.#is_looking = false;
      // What waits on is looked at again when as much time has passed once more.
      const now_ms = this.#clock.monotonicMs();
      for (const entry of this.#waiting) entry.since_ms = now_ms;
    }
    this.#schedule();
  }

  async #answers(): Promise<boolean> {
    const { promise: late, resolve } = Promise.withResolvers<boolean>();
    const timer = this.#clock.after(PROBE_MS, () => resolve(false));
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
