import type { Readable } from 'node:stream';
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Service } from '../../base/service.ts';
import { ApiError } from '../../contract/errors.ts';
import type { Unpacked } from '../archive/unpack.ts';
import type { BytePath } from '../byte-path.ts';
import type { UploadJournal } from '../change/upload-journal.ts';
import type { ListRequest } from '../list.ts';
import { Line, SIDE_ENDED } from './line.ts';

/** One that hangs in the file system must not hold up the others: as many as a process has for single calls. */
const THREADS_MAX = 4;
/** How long threads without work are kept, in ms. */
const KEEP_MS = 20_000;

/** What a thread is started with. */
export interface FileThreadSettings {
  own_paths: readonly string[];
  journal_folder: string;
}

/** What a thread does. */
export type Work =
  | { verb: 'list'; request: ListRequest }
  | { verb: 'pack'; path: BytePath }
  | { verb: 'unpack'; path: BytePath };

/** Work, and the port of its line. */
export interface Call {
  work: Work;
  port: MessagePort;
}

/** What file threads are made with. */
export interface FileThreadsParts {
  clock: Clock;
  own_paths: readonly string[];
  journal: UploadJournal;
}

interface Thread {
  worker: Worker;
  /** The work that is under way. */
  lines: Set<Line>;
}

/**
 * Lists and archives, made in threads: they are many small calls of the system, which must neither delay what else this
 * thread does nor each go through the pool. A thread is started when all others are at work, and they end after the last.
 */
export class FileThreads implements Pick<Service, 'stop'> {
  readonly #parts: FileThreadsParts;
  readonly #threads = new Set<Thread>();
  #idle: Timer | null = null;
  #is_stopped = false;

  constructor(parts: FileThreadsParts) {
    this.#parts = parts;
  }

  /** A page of a directory's entries, as JSON. Throws as `Files.list` does. */
  async list(request: ListRequest): Promise<Uint8Array> {
    const line = await this.#call({ verb: 'list', request });
    try {
      return (await line.result()) as Uint8Array;
    } finally {
      line.close(GONE);
    }
  }

  /** A tar stream of a directory's tree or of one file. Throws as `Files.pack` does. */
  async pack(path: BytePath, signal: AbortSignal): Promise<AsyncGenerator<Buffer, void>> {
    const line = await this.#call({ verb: 'pack', path });
    const close = () => line.close(GONE);
    signal.addEventListener('abort', close);
    if (signal.aborted) close();
    try {
      await line.whenReady();
    } catch (error) {
      close();
      throw error;
    }
    return (async function* () {
      try {
        yield* line.pieces();
      } finally {
        signal.removeEventListener('abort', close);
        close();
      }
    })();
  }

  /** Unpacks a tar or tar.gz stream, which is left open, under a directory. Throws as `Files.unpack` does. */
  async unpack(path: BytePath, data: Readable, signal: AbortSignal): Promise<Unpacked> {
    const line = await this.#call({ verb: 'unpack', path });
    const cut = () => line.close(new ApiError('invalid_request', 'The body was cut off.'));
    signal.addEventListener('abort', cut);
    if (signal.aborted) cut();
    sendAll(data, line).catch(cut);
    try {
      return (await line.result()) as Unpacked;
    } finally {
      signal.removeEventListener('abort', cut);
      line.close(GONE);
    }
  }

  /** Ends the threads, with what they are doing. Idempotent. */
  async stop(): Promise<void> {
    this.#is_stopped = true;
    this.#end();
  }

  #end(): void {
    this.#idle?.cancel();
    // Not awaited: one that hangs in the file system ends with the process.
    for (const { worker } of this.#threads) void worker.terminate();
    this.#threads.clear();
  }

  async #call(work: Work): Promise<Line> {
    const journal_folder = await this.#parts.journal.address();
    this.#idle?.cancel();
    if (this.#is_stopped) throw new ApiError('shutting_down');
    const { worker, lines } = this.#leastBusy({ own_paths: this.#parts.own_paths, journal_folder });
    const { port1, port2 } = new MessageChannel();
    const line = new Line(port1);
    lines.add(line);
    port1.once('close', () => {
      lines.delete(line);
      this.#endLater();
    });
    worker.postMessage({ work, port: port2 } satisfies Call, [port2]);
    return line;
  }

  #leastBusy(settings: FileThreadSettings): Thread {
    const [first] = [...this.#threads].sort((one, other) => one.lines.size - other.lines.size);
    if (first && (first.lines.size === 0 || this.#threads.size >= THREADS_MAX)) return first;
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'cjs';
    const worker = new Worker(new URL(`./file-thread.${extension}`, import.meta.url), {
      workerData: settings,
      env: {},
      // Entries pass through and are gone: a small young generation is collected in a blink.
      resourceLimits: { maxYoungGenerationSizeMb: 8 },
    });
    const thread = { worker, lines: new Set<Line>() };
    this.#threads.add(thread);
    worker.unref();
    worker.on('error', () => {}); // its work tells of its end
    worker.on('exit', () => {
      this.#threads.delete(thread);
      for (const line of thread.lines) line.close(new Error(SIDE_ENDED));
    });
    return thread;
  }

  #endLater(): void {
    if ([...this.#threads].some(({ lines }) => lines.size > 0)) return;
    this.#idle?.cancel();
    this.#idle = this.#parts.clock.after(KEEP_MS, () => this.#end());
  }
}

const GONE = new Error('nobody wants it any more');

/** Rejects where the stream breaks off. */
async function sendAll(data: Readable, line: Line): Promise<void> {
  for await (const chunk of data.iterator({ destroyOnReturn: false })) {
    if (await line.send(chunk)) continue;
    data.resume();
    return;
  }
  line.done(null);
}
