import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock, Timer } from '../clock.ts';

/** Detects readers that have disconnected, and keeps connections through proxies open. */
const HEARTBEAT_MS = 15_000;

/** One server-sent event to write; `data` may have several lines. */
export interface SseMessage {
  id: string;
  event: string;
  data: string;
}

/**
 * An answer that is a stream of server-sent events. Callers must await each write: then a slow reader costs no more
 * memory than the connection's buffer.
 */
export class SseResponse {
  /** Aborts when the reader disconnects. */
  readonly gone: AbortSignal;
  readonly #reply: FastifyReply;
  readonly #paced: PacedWrite;
  readonly #clock: Clock;
  #heartbeat: Timer;

  /** Takes over the answer and sends its head at once. */
  constructor(request: FastifyRequest, reply: FastifyReply, clock: Clock) {
    this.#reply = reply;
    this.#paced = pacedWrite(reply);
    this.#clock = clock;
    this.gone = disconnectSignal(reply);
    this.#heartbeat = this.#beatLater();
    this.gone.addEventListener('abort', () => this.#heartbeat.cancel());
    const headers = reply.getHeaders();
    reply.hijack();
    reply.raw.writeHead(200, {
      ...(headers as OutgoingHttpHeaders),
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-request-id': request.id,
    });
    reply.raw.flushHeaders();
  }

  /** Resolves when the system has taken the event, or the reader has disconnected. */
  async write({ id, event, data }: SseMessage): Promise<void> {
    // A lone carriage return also ends a line of the stream.
    const lines = data.replaceAll(/\r\n|[\r\n]/g, '\ndata: ');
    await this.#paced(`id: ${id}\nevent: ${event}\ndata: ${lines}\n\n`);
  }

  /** Ends the stream as complete. */
  end(): void {
    this.#heartbeat.cancel();
    this.#reply.raw.end();
  }

  /** Cuts the connection after a comment that says why, which readers skip; one that reads too slowly is not told. */
  cutWith(reason: string): void {
    const { raw } = this.#reply;
    if (raw.writableNeedDrain || !raw.socket) {
      this.cut();
      return;
    }
    raw.write(`: ${reason}\n\n`);
    raw.socket.destroySoon();
  }

  /** Cuts the connection, so that the reader sees an incomplete stream. */
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

/** Shared: making an error for each answer would take longer than noticing its end. */
const GONE = new Error('the client has disconnected');

/** Returns a signal that aborts when the client disconnects or has the whole answer. */
export function disconnectSignal({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  onceOver(raw, () => gone.abort(GONE));
  return gone.signal;
}

/** Calls `end` when an answer is complete, or its connection is closed; at once where it is already. */
export function onceOver(answer: ServerResponse | Socket, end: () => void): void {
  if (answer.destroyed) end();
  else answer.once('close', end);
}

/** Writes to an answer; resolves when the system has taken the data, or the client has disconnected. */
export type PacedWrite = (data: string | Uint8Array) => Promise<void>;

/** The function that writes to this answer one piece after the other, each once the one before is taken. */
export function pacedWrite({ raw }: FastifyReply): PacedWrite {
  let resume = () => {};
  raw.once('close', () => resume()); // once for all pieces: a listener each would cost more than the write
  return (data) =>
    new Promise((resolve) => {
      resume = resolve;
      if (raw.destroyed) resolve();
      else raw.write(data, () => resolve());
    });
}

/** Resolves with the value of `wait`, or with undefined when `signal` aborts or `wait` fails. Leaves no listener. */
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
