import type { Clock } from '../../base/clock.ts';
import { ApiError } from '../../contract/errors.ts';

interface PendingCall {
  resolve: (output: unknown) => void;
  reject: (error: Error) => void;
}

/** Questions to the writer that it has not answered yet, each with a deadline of its own. */
export class PendingCalls {
  readonly #clock: Clock;
  readonly #calls = new Map<number, PendingCall>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves to the output of call number `call`; rejects with `outbox_unavailable` after `within_ms`. */
  add<Output>(call: number, within_ms: number): Promise<Output> {
    return new Promise((resolve, reject) => {
      const timer = this.#clock.after(within_ms, () => {
        this.#calls.delete(call);
        reject(new ApiError('outbox_unavailable'));
      });
      this.#calls.set(call, {
        resolve: (output) => {
          timer.cancel();
          resolve(output as Output);
        },
        reject: (error) => {
          timer.cancel();
          reject(error);
        },
      });
    });
  }

  /** Passes on the writer's answer; `error` is its message, or null. A call that is no longer pending is ignored. */
  answer({ call, output, error }: { call: number; output: unknown; error: string | null }): void {
    const pending = this.#calls.get(call);
    this.#calls.delete(call);
    if (error === null) pending?.resolve(output);
    else pending?.reject(new ApiError('outbox_unavailable', undefined, { reason: error }));
  }

  /** Rejects every pending call with `outbox_unavailable`. */
  rejectAll(): void {
    for (const call of this.#calls.values()) call.reject(new ApiError('outbox_unavailable'));
  }
}
