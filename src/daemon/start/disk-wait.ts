import { type Clock, sleep } from '../../base/clock.ts';
import { ApiError } from '../../contract/errors.ts';

/** The delay before a disk that refused is tried again. */
const DISK_RETRY_MS = 1_000;

/** Retries steps of the start that a disk in trouble refuses. */
export class DiskWait {
  readonly #clock: Clock;
  readonly #on_refused: (reason: string) => Promise<void>;
  #is_waiting = false;
  #is_cancelled = false;

  /** `onRefused` is called after each refusal, while `is_waiting`. */
  constructor(clock: Clock, onRefused: (reason: string) => Promise<void>) {
    this.#clock = clock;
    this.#on_refused = onRefused;
  }

  /** Whether a step waits for the disk. */
  get is_waiting(): boolean {
    return this.#is_waiting;
  }

  /** Retries no further: the next refusal is thrown. */
  cancel(): void {
    this.#is_cancelled = true;
  }

  /** Repeats `work` while it throws `outbox_unavailable`, until it succeeds or `cancel` is called. */
  async untilAccepted<Result>(work: () => Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        const result = await work();
        this.#is_waiting = false;
        return result;
      } catch (error) {
        const may_pass = error instanceof ApiError && error.code === 'outbox_unavailable';
        if (!may_pass || this.#is_cancelled) throw error;
        const { reason } = (error.details ?? {}) as { reason?: string };
        this.#is_waiting = true;
        await this.#on_refused(reason ?? error.message);
      }
      await sleep(this.#clock, DISK_RETRY_MS);
    }
  }
}
