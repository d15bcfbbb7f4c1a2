import type { HttpExchange } from '../../../base/http/app.ts';
import { ApiError } from '../../../contract/errors.ts';

/** A bounded number of requests at a time. */
export class Places {
  readonly #max: number;
  readonly #name: string;
  #taken = 0;

  /** `name`: of the requests, in the plural. */
  constructor(max: number, name: string) {
    this.#max = max;
    this.#name = name;
  }

  /** Takes a place for a request until its answer is closed, beside others in use. Throws `too_many_requests`. */
  take({ reply }: HttpExchange, others: number): void {
    if (this.#taken + others >= this.#max) {
      throw new ApiError('too_many_requests', `At most ${this.#max} ${this.#name} are allowed at a time.`, {
        retry_after_s: 1,
      });
    }
    this.#taken += 1;
    reply.raw.once('close', () => {
      this.#taken -= 1;
    });
  }
}
