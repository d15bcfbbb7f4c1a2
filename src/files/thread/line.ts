import type { MessagePort } from 'node:worker_threads';
import { ApiError, type ErrorCode } from '../../contract/errors.ts';

/** What one side of a line tells the other. `piece` is a part of a stream, `taken` says that one is used up. */
type Message =
  | { kind: 'begun' }
  | { kind: 'ready' }
  | { kind: 'piece'; piece: Uint8Array }
  | { kind: 'taken' }
  | { kind: 'done'; result: unknown }
  | { kind: 'failed'; failure: Failure };

/** An error as it crosses: of the catalogue, or the system's. */
interface Failure {
  is_api: boolean;
  code: string;
  message: string;
  details?: unknown;
}

/** How the work has ended. */
type End = { result: unknown } | { error: Error };

/** The end of work whose other side has ended without a word. */
export const SIDE_ENDED = 'the other side has ended';

/** Pieces on their way at a time. */
export const AHEAD = 4;

/** One piece of work, between the thread that does it and the one that wants it: streams both ways, and an end. */
export class Line {
  readonly #port: MessagePort;
  readonly #gone = new AbortController();
  readonly #pieces: Buffer[] = [];
  #waiting: (() => void)[] = [];
  #is_begun = false;
  #is_ready = false;
  #sent = 0;
  #end: End | null = null;

  constructor(port: MessagePort) {
    this.#port = port;
    port.on('message', (message: Message) => this.#receive(message));
    port.on('close', () => {
      this.#finish({ error: new Error(SIDE_ENDED) });
      this.#gone.abort();
    });
  }

  /** Aborts when the other side wants no more, or has ended. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Resolves once the other side takes the work up, or the line is closed. */
  async whenBegun(): Promise<void> {
    await this.#until(() => this.#is_begun || this.#end !== null);
  }

  /** Resolves once the other side is ready to send pieces. Throws what it failed with. */
  async whenReady(): Promise<void> {
    await this.#until(() => this.#is_ready || this.#end !== null);
    if (this.#end && 'error' in this.#end) throw this.#end.error;
  }

  /** What the other side has done. Throws what it failed with. */
  async result(): Promise<unknown> {
    await this.#until(() => this.#end !== null);
    const end = this.#end as End;
    if ('error' in end) throw end.error;
    return end.result;
  }

  /** The pieces until the other side is done. Throws what it failed with. */
  async *pieces(): AsyncGenerator<Buffer, void> {
    for (;;) {
      const piece = this.#pieces.shift();
      if (piece) {
        yield piece;
        this.#post({ kind: 'taken' });
      } else if (this.#end === null) await this.#until(() => this.#pieces.length > 0 || this.#end !== null);
      else {
        if ('error' in this.#end) throw this.#end.error;
        return;
      }
    }
  }

  begun(): void {
    this.#post({ kind: 'begun' });
  }

  ready(): void {
    this.#post({ kind: 'ready' });
  }

  /**
   * Sends a piece, which is not to be used any more, once few are on their way. False where the other side has ended.
   */
  async send(piece: Uint8Array): Promise<boolean> {
    await this.#until(() => this.#sent < AHEAD || this.#end !== null);
    if (this.#end) return false;
    this.#sent += 1;
    const own = ownMemory(piece);
    this.#post({ kind: 'piece', piece: own }, own.buffer as ArrayBuffer);
    return true;
  }

  /** Says that this side is done. The memory of a result in bytes is handed over. */
  done(result: unknown): void {
    if (result instanceof Uint8Array) {
      const own = ownMemory(result);
      this.#post({ kind: 'done', result: own }, own.buffer as ArrayBuffer);
    } else this.#post({ kind: 'done', result });
  }

  /** Says that this side has failed. */
  fail(error: unknown): void {
    const { code = '', message } = error as NodeJS.ErrnoException;
    const details = error instanceof ApiError ? error.details : undefined;
    this.#post({ kind: 'failed', failure: { is_api: error instanceof ApiError, code, message, details } });
  }

  /** Ends the work, here with this error unless it has ended by itself. Idempotent. */
  close(error: Error): void {
    this.#finish({ error });
    this.#port.close();
  }

  #post(message: Message, ...handed_over: ArrayBuffer[]): void {
    this.#port.postMessage(message, handed_over);
  }

  #receive(message: Message): void {
    switch (message.kind) {
      case 'begun':
        this.#is_begun = true;
        break;
      case 'ready':
        this.#is_ready = true;
        break;
      case 'piece':
        this.#pieces.push(Buffer.from(message.piece.buffer as ArrayBuffer));
        break;
      case 'taken':
        this.#sent -= 1;
        break;
      case 'done':
        this.#finish({ result: message.result });
        break;
      case 'failed':
        this.#finish({ error: errorOf(message.failure) });
        break;
    }
    this.#wake();
  }

  #finish(end: End): void {
    this.#end ??= end;
    this.#wake();
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  async #until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    }
  }
}

/** A part of a larger buffer cannot be handed over without the rest. */
function ownMemory(piece: Uint8Array): Uint8Array {
  const is_whole = piece.buffer instanceof ArrayBuffer && piece.buffer.byteLength === piece.byteLength;
  return is_whole ? piece : new Uint8Array(piece);
}

function errorOf({ is_api, code, message, details }: Failure): Error {
  if (is_api) return new ApiError(code as ErrorCode, message, details);
  return Object.assign(new Error(message), code === '' ? {} : { code });
}
