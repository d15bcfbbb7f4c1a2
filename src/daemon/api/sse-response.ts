import { once } from 'node:events';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock, Timer } from '../../base/clock.ts';

/** So that a reader that is gone is noticed, and one behind a proxy is kept. */
const HEARTBEAT_MS = 15_000;

/** One server-sent event; `data` may have several lines. */
export interface ServerSentEvent {
  id: string;
  event: string;
  data: string;
}

/**
 * An answer that is a stream of server-sent events. Whoever awaits each write keeps no more in memory than the
 * connection does, however slow the reader is.
 */
export class SseResponse {
  /** Aborts when the reader has gone. */
  readonly gone: AbortSignal;
  readonly #reply: FastifyReply;
  readonly #clock: Clock;
  #heartbeat: Timer;

  /** Takes the answer over; the head is sent at once. */
  constructor(request: FastifyRequest, reply: FastifyReply, clock: Clock) {
    this.#reply = reply;
    this.#clock = clock;
    this.gone = disconnectSignal(reply);
    this.#heartbeat = this.#beatLater();
    this.gone.addEventListener('abort', () => this.#heartbeat.cancel());
    reply.hijack();
    reply.raw.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-request-id': request.id,
    });
    reply.raw.flushHeaders();
  }

  /** Resolves when there is room for more, or the reader has gone. */
  async write({ id, event, data }: ServerSentEvent): Promise<void> {
    // A lone carriage return ends a line of the stream, too.
    const lines = data.replaceAll(/\r\n|[\r\n]/g, '\ndata: ');
    const text = `id: ${id}\nevent: ${event}\ndata: ${lines}\n\n`;
    await writeWithRoom(this.#reply, text, this.gone);
  }

  /** Ends the stream as a whole one. */
  end(): void {
    this.#heartbeat.cancel();
    this.#reply.raw.end();
  }

  /** Ends the stream as a broken one. */
  cut(): void {
    this.#reply.raw.destroy();
  }

  #beatLater(): Timer {
    return this.#clock.after(HEARTBEAT_MS, () => {
      if (!this.#reply.raw.writableNeedDrain) this.#reply.raw.write(': \n\n');
      this.#heartbeat = this.#beatLater();
    });
  }
}

/** Aborts when whoever asked has gone, or has the whole answer. */
export function disconnectSignal({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  if (raw.destroyed) gone.abort();
  else raw.once('close', () => gone.abort());
  return gone.signal;
}

/** Writes to an answer; resolves when there is room for more, or the reader has gone. */
export async function writeWithRoom(
  { raw }: FastifyReply,
  data: string | Uint8Array,
  gone: AbortSignal,
): Promise<void> {
  if (gone.aborted || raw.write(data)) return;
  await once(raw, 'drain', { signal: gone }).catch(() => {});
}

/** What `wait` comes to, or undefined once `signal` aborts; nothing of it is left behind then. */
export function untilDisconnect<Value>(
  wait: Promise<Value>,
  signal: AbortSignal,
): Promise<Value | undefined> {
  return new Promise((resolve) => {
    const done = (value?: Value) => {
      signal.removeEventListener('abort', gone);
      resolve(value);
    };
    const gone = () => done();
    if (signal.aborted) return done();
    signal.addEventListener('abort', gone);
    wait.then(done, gone);
  });
}
