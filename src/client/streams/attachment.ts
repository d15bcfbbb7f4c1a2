import { SandboxdError } from '../error.ts';
import { pause } from '../pause.ts';
import type { SandboxRoutes } from '../sandbox-routes.ts';
import { OutputPosition, objectIn, toBase64 } from './bytes.ts';
import type { OutputEvent } from './output.ts';
import type { Process } from './process.ts';
import { mayPass, reconnectDelayMs } from './reconnect.ts';
import type { OpenSocket, Socket } from './socket.ts';

/** How a process is attached to. */
export interface AttachOptions {
  /** Where output begins; without, at the oldest that is kept. */
  offset?: number;
  /** While it is read, the process is held up rather than that output is missed. */
  lossless?: boolean;
  signal?: AbortSignal;
  /** The wait before each new connection, in ms. Without: from 250 ms, doubling up to 10 s, and half of it random. */
  reconnect_ms?: number;
}

/**
 * What an attached client is told: beside output and the end, whether it is connected, and `error` where something that
 * it sent could not be done.
 */
export type AttachEvent =
  | OutputEvent
  | { type: 'connected' }
  | { type: 'lost' }
  | { type: 'error'; error: SandboxdError };

/** The state of a socket that is open. */
const OPEN = 1;
/** Unsent input at which more of it is refused. */
const UNSENT_MAX_CHARACTERS = 4 * 1024 * 1024;

/**
 * A terminal's connection to a process: read it with `for await`, which ends with the process, or with `close`. A
 * lost connection is made again where it ended; what is written meanwhile is sent then. Input that was under way when a
 * connection broke may be lost: where that matters, POST `/processes/{process_id}/stdin` takes an offset. Contract
 * section 4, GET `/processes/{id}/attach`.
 */
export class Attachment implements AsyncIterable<AttachEvent> {
  readonly #routes: SandboxRoutes;
  readonly #process_id: string;
  readonly #options: AttachOptions;
  readonly #position = new OutputPosition();
  readonly #closed = new AbortController();
  #socket: Socket | null = null;
  #unsent: string[] = [];
  #unsent_characters = 0;
  #size: string | null = null;

  constructor(routes: SandboxRoutes, process_id: string, options: AttachOptions) {
    this.#routes = routes;
    this.#process_id = process_id;
    this.#options = options;
  }

  /** Types. Throws a RangeError where 4 MiB wait to be sent. */
  write(data: string | Uint8Array): void {
    const frame = typeof data === 'string' ? { data } : { data: toBase64(data), encoding: 'base64' };
    const text = JSON.stringify({ type: 'stdin', ...frame });
    if (this.unsent_characters + text.length > UNSENT_MAX_CHARACTERS)
      throw new RangeError('too much input waits to be sent');
    this.#send(text);
  }

  /** Ends the standard input; at a terminal, as the key for the end of input does. */
  end(): void {
    this.#send(JSON.stringify({ type: 'stdin', data: '', end: true }));
  }

  /** Tells the process how large its terminal is. */
  resize(cols: number, rows: number): void {
    this.#size = JSON.stringify({ type: 'resize', cols, rows });
    this.#socket?.send(this.#size);
  }

  /** Sends a signal, such as `SIGINT`. */
  signal(signal: string): void {
    this.#send(JSON.stringify({ type: 'signal', signal }));
  }

  /** Leaves the process alone; it goes on. */
  close(): void {
    this.#closed.abort();
    this.#socket?.close();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<AttachEvent, void> {
    const { signal: given } = this.#options;
    const signal = given ? AbortSignal.any([given, this.#closed.signal]) : this.#closed.signal;
    try {
      yield* this.#follow(signal);
    } catch (error) {
      given?.throwIfAborted();
      if (!this.#closed.signal.aborted) throw error;
    } finally {
      this.#socket?.close();
      this.#socket = null;
    }
  }

  /** The bytes of input that are not sent yet, to hold back more of it. */
  get unsent_characters(): number {
    return this.#unsent_characters + (this.#socket?.bufferedAmount ?? 0);
  }

  async *#follow(signal: AbortSignal): AsyncGenerator<AttachEvent, void> {
    for (let failures = 0; ; failures++) {
      const { reconnect_ms } = this.#options;
      if (failures > 0) await pause(reconnect_ms ?? reconnectDelayMs(failures), signal);
      const opened = await this.#connect(failures, signal);
      if (opened === null) continue;
      const { socket, texts } = opened;
      const onAbort = () => socket.close();
      signal.addEventListener('abort', onAbort, { once: true });
      try {
        yield { type: 'connected' };
        for await (const text of texts) {
          failures = 0;
          signal.throwIfAborted();
          const event = objectIn(text);
          if (event.type === 'output') yield* this.#position.take(event);
          if (event.type === 'error') yield { type: 'error', error: frameError(event.error) };
          if (event.type === 'exit') return yield { type: 'exit', process: event.process as Process };
        }
        signal.throwIfAborted();
      } finally {
        signal.removeEventListener('abort', onAbort);
        this.#socket = null;
        socket.close();
      }
      yield { type: 'lost' };
    }
  }

  /** Null where nobody answers now. Throws where the process cannot be attached to. */
  async #connect(failures: number, signal: AbortSignal): Promise<OpenSocket | null> {
    // The position may no longer be kept, which a handshake cannot tell: each other attempt begins at the oldest byte.
    // A terminal, which alone has a size, writes to stdout alone.
    const read = this.#size === null ? this.#position.offset : this.#position.endOf('stdout');
    const from = read ?? this.#options.offset;
    const offset = failures % 2 === 0 && failures > 0 ? undefined : from;
    const { lossless } = this.#options;
    const path = { process_id: this.#process_id };
    try {
      const query = { offset, lossless };
      const opened = await this.#routes.connect('/processes/{process_id}/attach', { path, query, signal });
      const { socket } = opened;
      this.#socket = socket;
      if (this.#size !== null) socket.send(this.#size);
      for (const text of this.#unsent.splice(0)) socket.send(text);
      this.#unsent_characters = 0;
      return opened;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof SandboxdError)) throw error;
      if (error.code === 'gone' || (error.code !== 'unreachable' && mayPass(error))) return null;
      if (error.code !== 'unreachable') throw error;
    }
    // Why the handshake was refused, ordinary calls tell: of the same route, and of the process.
    for (const route of ['/processes/{process_id}/attach', '/processes/{process_id}']) {
      await this.#routes.send('GET', route, { path, signal }).catch((error: unknown) => {
        if (!mayPass(error) && !asksForUpgrade(error)) throw error;
      });
    }
    return null;
  }

  #send(text: string): void {
    if (this.#socket?.readyState === OPEN) {
      this.#socket.send(text);
    } else {
      this.#unsent.push(text);
      this.#unsent_characters += text.length;
    }
  }
}

function asksForUpgrade(error: unknown): boolean {
  const { details } = error as SandboxdError;
  return (details as { field?: unknown } | undefined)?.field === 'Upgrade';
}

function frameError(error: unknown): SandboxdError {
  const { code, message, details } = (error ?? {}) as { code?: string; message?: string; details?: unknown };
  return new SandboxdError({ code: code ?? 'bad_answer', message: message ?? '', status: 0, details });
}
