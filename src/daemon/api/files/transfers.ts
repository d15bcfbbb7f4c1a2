import type { HttpExchange } from '../../../base/http/app.ts';
import { FILE_IDLE_TIMEOUT_MS, FILE_TRANSFERS_MAX } from '../../../contract/defaults.ts';
import { ApiError } from '../../../contract/errors.ts';

/** The transfers under way: a bounded number, none of which waits for ever for its client. */
export class Transfers {
  readonly #max: number;
  readonly #idle_timeout_ms: number;
  #count = 0;

  constructor(max = FILE_TRANSFERS_MAX, idle_timeout_ms = FILE_IDLE_TIMEOUT_MS) {
    this.#max = max;
    this.#idle_timeout_ms = idle_timeout_ms;
  }

  /** Counts a transfer until its answer is closed, and cuts an idle client. Throws `too_many_requests`. */
  begin(exchange: HttpExchange): void {
    this.count(exchange);
    // Counts any byte that moves as activity, also within one long write. An idle connection is then destroyed.
    exchange.request.raw.socket.setTimeout(this.#idle_timeout_ms);
  }

  /** Counts one that does not depend on its client. Throws `too_many_requests`. */
  count({ reply }: HttpExchange): void {
    if (this.#count >= this.#max) {
      throw new ApiError('too_many_requests', `At most ${this.#max} transfers are allowed at a time.`, {
        retry_after_s: 1,
      });
    }
    this.#count += 1;
    reply.raw.once('close', () => {
      this.#count -= 1;
    });
  }

  /** Stops waiting for the client: all of its bytes have arrived, and the rest is up to the disk. */
  received({ request }: HttpExchange): void {
    request.raw.socket.setTimeout(0);
  }
}
