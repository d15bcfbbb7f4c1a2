import type { WebSocket } from 'ws';
import { type Clock, runTime, type Timer } from '../../base/clock.ts';

/** Keeps connections through proxies open. */
const INTERVAL_MS = 15_000;
/** A client that answers none of this many pings in a row is gone. */
const UNANSWERED_MAX = 2;

/** Pings a client, and cuts one that does not answer: a machine that has vanished closes no connection. */
export class SocketHeartbeat {
  readonly #clock: Clock;
  readonly #socket: WebSocket;
  #timer: Timer;
  #unanswered = 0;
  #buffered_bytes = 0;

  constructor(clock: Clock, socket: WebSocket) {
    this.#clock = runTime(clock);
    this.#socket = socket;
    const alive = () => {
      this.#unanswered = 0;
    };
    socket.on('pong', alive);
    socket.on('message', alive);
    this.#timer = this.#beatLater();
  }

  /** Ends it. Idempotent. */
  stop(): void {
    this.#timer.cancel();
  }

  #beatLater(): Timer {
    return this.#clock.after(INTERVAL_MS, () => this.#beat());
  }

  #beat(): void {
    const { readyState, OPEN, isPaused, bufferedAmount } = this.#socket;
    // Nothing is read of one that is paused, and a slow one that takes data has not come to the ping yet.
    const is_heard = !isPaused && bufferedAmount >= this.#buffered_bytes;
    this.#buffered_bytes = bufferedAmount;
    if (is_heard && this.#unanswered >= UNANSWERED_MAX) {
      this.#socket.terminate();
      return;
    }
    if (readyState === OPEN) {
      this.#unanswered += 1;
      this.#socket.ping();
    }
    this.#timer = this.#beatLater();
  }
}
