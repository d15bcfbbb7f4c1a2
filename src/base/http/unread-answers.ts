import type { Socket } from 'node:net';
import { UNREAD_MAX_BYTES } from '../../contract/defaults.ts';

/** How often connections are looked at for answers that nobody takes: at every so many requests, */
const REQUESTS_A_LOOK = 8;
/** and after so long at least, in ms: who takes nothing for that time is not just slow. */
const LOOK_MS = 2_000;

/**
 * Cuts connections whose clients do not take their answers, once such answers hold more than `UNREAD_MAX_BYTES` of memory
 * together: those from which nothing was taken since the look before, the largest first.
 */
export class UnreadAnswers {
  readonly #nowMs: () => number;
  #requests = 0;
  #looked_ms = 0;
  readonly #taken = new WeakMap<Socket, number>();

  constructor(nowMs = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Looks at the connections, at every so many calls; to be called with each request. */
  look(sockets: Iterable<Socket>): void {
    this.#requests += 1;
    if (this.#requests % REQUESTS_A_LOOK !== 0) return;
    const now_ms = this.#nowMs();
    if (now_ms - this.#looked_ms < LOOK_MS) return;
    this.#looked_ms = now_ms;
    const stalled: Socket[] = [];
    let unread = 0;
    for (const socket of sockets) {
      if (socket.writableLength === 0) continue;
      unread += socket.writableLength;
      const taken = socket.bytesWritten - socket.writableLength;
      if (this.#taken.get(socket) === taken) stalled.push(socket);
      this.#taken.set(socket, taken);
    }
    stalled.sort((one, other) => other.writableLength - one.writableLength);
    for (const socket of stalled) {
      if (unread <= UNREAD_MAX_BYTES) return;
      unread -= socket.writableLength;
      socket.destroy();
    }
  }
}
