import { SandboxdError } from '../error.ts';
import { pause } from '../pause.ts';
import type { SandboxRoutes } from '../sandbox-routes.ts';
import { type OutputGap, type OutputPiece, OutputPosition } from './bytes.ts';
import type { Process } from './process.ts';
import { type FollowStreamOptions, mayPass, reconnectDelayMs } from './reconnect.ts';

/** How all output of a process is read. */
export interface ReadOutputOptions extends FollowStreamOptions {
  /** While it is read, the process is held up rather than that output is missed. */
  lossless?: boolean;
}

/** Takes a piece of output, or a gap in it; the next one of its stream comes once it has resolved. */
export type TakeOutput = (event: OutputPiece | OutputGap) => void | Promise<void>;

type Stream = OutputPiece['stream'];

const STREAMS = ['stdout', 'stderr'] as const;
const BYTES = 'application/octet-stream';
const NOTHING = new Uint8Array();

/** Reads both streams of a process until it has ended, each over as many connections as it takes; resolves with the process. */
export async function readOutput(
  routes: SandboxRoutes,
  process_id: string,
  take: TakeOutput,
  options: ReadOutputOptions,
): Promise<Process> {
  const { signal } = options;
  const reader = new OutputReader(routes, process_id, take, options);
  for (;;) {
    await reader.readAll();
    const path = { process_id };
    const process = await reader.untilAnswered(() =>
      routes.data('GET', '/processes/{process_id}', { path, signal }),
    );
    if ((process as Process).exited_at !== null) return process as Process;
    // A server in between has ended the answers: they go on.
    await pause(reader.delayMs(1), signal);
  }
}

/** Each stream has a connection of its own, on which its bytes come as they are, for a fraction of what events cost. */
class OutputReader {
  readonly #routes: SandboxRoutes;
  readonly #process_id: string;
  readonly #take: TakeOutput;
  readonly #options: ReadOutputOptions;
  readonly #position = new OutputPosition();
  /** Where the next answer is to begin; absent for the oldest byte that is kept. */
  readonly #offsets = new Map<Stream, number>();
  readonly #connected = new Set<Stream>();
  #is_lost = false;

  constructor(routes: SandboxRoutes, process_id: string, take: TakeOutput, options: ReadOutputOptions) {
    this.#routes = routes;
    this.#process_id = process_id;
    this.#take = take;
    this.#options = options;
  }

  delayMs(failures: number): number {
    return this.#options.reconnect_ms ?? reconnectDelayMs(failures);
  }

  /** Resolves when both streams have ended; the first failure ends the other. */
  async readAll(): Promise<void> {
    const { signal } = this.#options;
    const failed = new AbortController();
    const stop = signal ? AbortSignal.any([signal, failed.signal]) : failed.signal;
    try {
      await Promise.all(STREAMS.map((stream) => this.#follow(stream, stop)));
    } finally {
      failed.abort();
    }
  }

  /** Calls until there is an answer, or a failure that will not pass. */
  async untilAnswered<Data>(call: () => Promise<Data>): Promise<Data> {
    for (let failures = 1; ; failures++) {
      try {
        return await call();
      } catch (error) {
        if (!mayPass(error)) throw error;
      }
      await pause(this.delayMs(failures), this.#options.signal);
    }
  }

  async #follow(stream: Stream, signal: AbortSignal): Promise<void> {
    for (let failures = 1; ; failures++) {
      const before = this.#offsets.get(stream);
      try {
        if (await this.#read(stream, signal)) return;
        signal.throwIfAborted();
        this.#tell(stream, false);
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof SandboxdError && error.code === 'gone') this.#offsets.delete(stream);
        else if (!mayPass(error)) throw error;
      }
      if (this.#offsets.get(stream) !== before) failures = 1;
      await pause(this.delayMs(failures), signal);
    }
  }

  /** Reads over one connection, and says whether that came to the end of the stream. */
  async #read(stream: Stream, signal: AbortSignal): Promise<boolean> {
    const answer = await this.#routes.ask('GET', '/processes/{process_id}/output', {
      path: { process_id: this.#process_id },
      query: { stream, follow: true, lossless: this.#options.lossless, offset: this.#offsets.get(stream) },
      headers: { accept: BYTES },
      signal,
    });
    this.#tell(stream, true);
    const pieces = answer.pieces()[Symbol.asyncIterator]();
    try {
      let offset = Number(answer.headers.get('x-output-offset') ?? Number.NaN);
      if (!Number.isSafeInteger(offset)) {
        const message = 'the server answered without X-Output-Offset';
        throw new SandboxdError({ code: 'bad_answer', message, status: answer.status });
      }
      await this.#add(stream, offset, NOTHING);
      for (;;) {
        const piece = await pieces.next().catch(() => null);
        if (piece === null) return false;
        if (piece.done) return true;
        await this.#add(stream, offset, piece.value);
        offset += piece.value.length;
      }
    } finally {
      await pieces.return?.();
    }
  }

  async #add(stream: Stream, offset: number, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    for (const event of this.#position.add(stream, offset, bytes)) await this.#take(event);
    this.#offsets.set(stream, offset + bytes.length);
  }

  /** Both connections to a server that dies are lost at once, which is told once. */
  #tell(stream: Stream, is_connected: boolean): void {
    if (is_connected) this.#connected.add(stream);
    else this.#connected.delete(stream);
    const is_whole = this.#connected.size === STREAMS.length;
    if (is_connected ? !is_whole : this.#is_lost) return;
    this.#is_lost = !is_connected;
    this.#options.onConnection?.(is_connected);
  }
}
