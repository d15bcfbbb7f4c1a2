import type { Readable } from 'node:stream';
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import { type Clock, runTime, type Timer } from '../../base/clock.ts';
import type { Service } from '../../base/service.ts';
import { ApiError } from '../../contract/errors.ts';
import type { Unpacked } from '../archive/unpack.ts';
import type { BytePath } from '../byte-path.ts';
import type { UploadJournal } from '../change/upload-journal.ts';
import type { ListRequest } from '../list.ts';
import { AHEAD, Line, SIDE_ENDED } from './line.ts';

/** Threads for new lists, and for new archives. */
const THREADS_MAX = 4;
/** Threads that hang in a file system, beside each of those: one costs some 5 MB. */
const HANGING_MAX = 4;
/** A thread that does not take up new work for this long, in ms, hangs, or does something large. */
const HANGS_MS = 2_000;
/** How long threads without work are kept, in ms. */
const KEEP_MS = 20_000;

/** What a thread is started with. */
export interface FileThreadSettings {
  own_paths: readonly string[];
  journal_folder: string;
  daemon_pid: number | undefined;
}

/** What a thread does. */
export type Work =
  | { verb: 'list'; request: ListRequest }
  | { verb: 'pack'; path: BytePath; is_exact: boolean }
  | { verb: 'unpack'; path: BytePath; is_exact: boolean };

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
  daemon_pid?: number;
}

interface Thread {
  /** A list is short, and must not share its thread with an archive that may hang in the middle of it. */
  kind: 'list' | 'archive';
  worker: Worker;
  /** The work that is under way. */
  lines: Set<Line>;
  /** Resolves once it runs, or has ended. */
  ready: Promise<void>;
  /** Whether it does not take up new work. */
  hangs: boolean;
}

/**
 * Lists and archives, made in threads: they are many small calls of the system, which must neither delay what else this
 * thread does nor each go through the pool. A thread is started when all others are at work, and they end after the last.
 * What a thread that hangs has not taken up goes to another one.
 */
export class FileThreads implements Pick<Service, 'stop'> {
  readonly #parts: FileThreadsParts;
  readonly #threads = new Set<Thread>();
  #idle: Timer | null = null;
  #is_stopped = false;

  constructor(parts: FileThreadsParts) {
    this.#parts = parts;
  }

  /** Whether there is no thread for new work of a kind, because all hang. */
  get is_full(): boolean {
    return this.#isFull('list') || this.#isFull('archive');
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

  /**
   * A tar stream of a directory's tree, which with `is_exact` is for a copy of it, or of one file. Throws as `Files.pack`
   * does.
   */
  async pack(
    path: BytePath,
    signal: AbortSignal,
    { is_exact = false } = {},
  ): Promise<AsyncGenerator<Buffer, void>> {
    const line = await this.#call({ verb: 'pack', path, is_exact });
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

  /**
   * Unpacks a tar or tar.gz stream, which is left open, under a directory; one that `is_exact` as the copy of a tree.
   * `onStep` is called as pieces of it are taken. Throws as `Files.unpack` does.
   */
  async unpack(
    path: BytePath,
    data: Readable,
    signal: AbortSignal,
    { is_exact = false, onStep = () => {} }: { is_exact?: boolean; onStep?: () => void } = {},
  ): Promise<Unpacked> {
    const line = await this.#call({ verb: 'unpack', path, is_exact });
    const cut = () => line.close(new ApiError('invalid_request', 'The body was cut off.'));
    signal.addEventListener('abort', cut);
    if (signal.aborted) cut();
    sendAll(data, line, onStep).catch(cut);
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

  /** Gives work to a thread that takes it up. */
  async #call(work: Work): Promise<Line> {
    const { own_paths, daemon_pid, journal, clock } = this.#parts;
    const journal_folder = await journal.address();
    for (;;) {
      this.#idle?.cancel();
      if (this.#is_stopped) throw new ApiError('shutting_down');
      const kind = work.verb === 'list' ? 'list' : 'archive';
      const thread = this.#leastBusy(kind, { own_paths, journal_folder, daemon_pid });
      const line = this.#post(thread, work);
      let is_given_back = false;
      const giveBack = () => {
        thread.hangs = true;
        // Without a thread that is free it waits for this one.
        if (this.#isFull(kind)) return;
        is_given_back = true;
        line.close(new Error('another thread does it'));
      };
      let timer: Timer | null = null;
      void thread.ready.then(() => {
        timer = runTime(clock).after(HANGS_MS, giveBack);
      });
      await line.whenBegun();
      (timer as Timer | null)?.cancel();
      if (!is_given_back) return line;
    }
  }

  #post({ worker, lines }: Thread, work: Work): Line {
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

  #of(kind: Thread['kind']): Thread[] {
    return [...this.#threads].filter((thread) => thread.kind === kind);
  }

  #isFull(kind: Thread['kind']): boolean {
    const threads = this.#of(kind);
    return threads.length === THREADS_MAX + HANGING_MAX && threads.every(({ hangs }) => hangs);
  }

  #leastBusy(kind: Thread['kind'], settings: FileThreadSettings): Thread {
    const threads = this.#of(kind);
    const able = threads.filter(({ hangs }) => !hangs);
    const [first] = (able.length > 0 ? able : threads).sort(
      (one, other) => one.lines.size - other.lines.size,
    );
    const is_enough = able.length >= THREADS_MAX || threads.length >= THREADS_MAX + HANGING_MAX;
    if (first && (is_enough || (!first.hangs && first.lines.size === 0))) return first;
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'cjs';
    const worker = new Worker(new URL(`./file-thread.${extension}`, import.meta.url), {
      workerData: settings,
      env: {},
      // Entries pass through and are gone: a small young generation is collected in a blink.
      resourceLimits: { maxYoungGenerationSizeMb: 8 },
    });
    const { promise: ready, resolve: begin } = Promise.withResolvers<void>();
    const thread = { kind, worker, lines: new Set<Line>(), ready, hangs: false };
    this.#threads.add(thread);
    worker.unref();
    // It takes work up, perhaps late.
    worker.on('message', () => {
      begin();
      thread.hangs = false;
    });
    worker.on('error', () => {}); // its work tells of its end
    worker.on('exit', () => {
      begin();
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
async function sendAll(data: Readable, line: Line, onStep: () => void): Promise<void> {
  let sent = 0;
  for await (const chunk of data.iterator({ destroyOnReturn: false })) {
    if (await line.send(chunk)) {
      sent += 1;
      if (sent > AHEAD) onStep();
      continue;
    }
    data.resume();
    return;
  }
  line.done(null);
}
