import { Worker } from 'node:worker_threads';
import type { Clock, Timer } from '../../base/clock.ts';
import { isSmallOutbox } from './files/database-file.ts';
import { diskAnswered } from './files/disk-answers.ts';
import { StateLock } from './files/state-lock.ts';
import type { CallName, FromWriter, OpenResult, ToWriter, ToWriterThread } from './messages.ts';
import {
  isOpenResult,
  refusedBatch,
  type WriterSettings,
  type WriterState,
  withoutAppends,
} from './messages.ts';
import { type PackedFromWriter, packToThread, unpackFromWriter } from './messages-packed.ts';
import { openWriter, type Writer } from './writer.ts';

/** The wait before a move that the disk or the platform refused is retried. */
const RETRY_MS = 1_000;
/** A disk that took a write this recently is not asked whether it answers, so that a start is not delayed. */
const ANSWERED_MS = 1_000;

/** Calls that only read: cheap enough, before there is a backlog, to be answered in the main thread. */
export const READING_CALLS: ReadonlySet<CallName> = new Set<CallName>([
  'untried',
  'due',
  'overdue',
  'probeCandidate',
  'isPruneDue',
  'lastSequence',
  'lifecycle',
  'oldestPending',
]);

/** Callbacks of an `OutboxThread`. */
export interface OutboxThreadHooks {
  /** A message of the writer. */
  onMessage: (message: FromWriter) => void;
  /** The writer ended without being asked to. */
  onFault: (error: Error) => void;
}

/**
 * Where the writer runs. A thread of its own costs as much memory and time as a whole small program, so a writer can
 * begin in this thread, for the few commits of a start, and moves to its own when there is more to do.
 *
 * | State | Entered by | Left by |
 * |---|---|---|
 * | here: messages are handled in this thread, writes only once the disk has answered, unless it did so a moment ago | `openHere`; no thread can be started for now | `moveToThread`; a write that fails |
 * | moving: messages wait until the thread has the files. This thread leaves the disk alone, which may begin to hang at any moment: it does not even close the files | `moveToThread` | the thread's `opened`; no thread: here |
 * | in the thread | `openInThread`; a move | the thread's end, which fails the client |
 * | closed | `end` | – |
 */
export class OutboxThread {
  readonly #settings: WriterSettings;
  readonly #clock: Clock;
  readonly #hooks: OutboxThreadHooks;
  readonly #disk_answered: () => Promise<void>;
  #here: Writer | null = null;
  /** The writer that has moved. It is kept: its end would close its files, and a disk that hangs would stop this thread. */
  readonly #left: Writer[] = [];
  #queue: ToWriter[] = [];
  /** When the disk last took a write, in monotonic ms. */
  #answered_ms = Number.NEGATIVE_INFINITY;
  #worker: Worker | null = null;
  /** What waits for the thread to have the files. */
  #held: ToWriter[] | null = null;
  #previous: WriterState | null = null;
  /** Held from start to end where the outbox was opened in this thread, also while the writer runs in its own. */
  #lock: StateLock | null = null;
  #is_closing = false;
  /** Runs while the platform cannot start a thread. */
  #no_thread: Timer | null = null;
  readonly #moved = Promise.withResolvers<void>();

  /** `disk_answered` resolves once the disk has taken a change, tried outside of this thread. */
  constructor(
    settings: WriterSettings,
    clock: Clock,
    hooks: OutboxThreadHooks,
    disk_answered = () => diskAnswered(settings.state_dir, clock),
  ) {
    this.#settings = settings;
    this.#clock = clock;
    this.#hooks = hooks;
    this.#disk_answered = disk_answered;
  }

  /** Opens the outbox in this thread. Call it once. */
  openHere(): OpenResult {
    if (!isSmallOutbox(this.#settings.state_dir)) return { kind: 'thread_due' };
    let opened: OpenResult | null = null;
    const takeLock = () => {
      this.#lock ??= new StateLock(this.#settings.state_dir);
      return this.#lock;
    };
    this.#here = openWriter(
      this.#settings,
      (message) => {
        if (isOpenResult(message)) opened = message;
        else this.#receive(message);
      },
      null,
      takeLock,
      false,
    );
    this.#answered_ms = this.#clock.monotonicMs();
    return opened as unknown as OpenResult;
  }

  /** Opens the outbox in a thread of its own. Rejects where the thread cannot be started. */
  openInThread(): Promise<OpenResult> {
    return new Promise((resolve, reject) => {
      const worker = this.#start();
      worker.once('error', reject);
      worker.on('message', (packed: PackedFromWriter) => {
        const message = unpackFromWriter(packed);
        if (message.kind === 'up')
          this.#toThread({ kind: 'open', previous: null, held: this.#lock?.identity ?? null });
        else if (isOpenResult(message)) resolve(message);
        else this.#receive(message);
      });
    });
  }

  /** Whether the files are open in the thread. */
  get is_in_thread(): boolean {
    return this.#here === null && this.#held === null;
  }

  /** Resolves when the thread has the files, or cannot be started for now. */
  get moved(): Promise<void> {
    return this.is_in_thread ? Promise.resolve() : this.#moved.promise;
  }

  /** Sends a message to the writer, wherever it runs. */
  post(message: ToWriter): void {
    if (message.kind === 'call' && message.name === 'close') this.#is_closing = true;
    if (this.#held) this.#held.push(message);
    else if (this.#here) this.#handleHere(message);
    else this.#toThread(message);
  }

  /** Moves the files to a thread as soon as it runs. Idempotent. */
  moveToThread(): void {
    if (!this.#here || this.#worker || this.#no_thread) return;
    this.#held ??= this.#queue.splice(0);
    this.#previous = this.#here.leave();
    try {
      this.#start().on('message', (packed: PackedFromWriter) => {
        const message = unpackFromWriter(packed);
        if (message.kind === 'up') this.#openHanded();
        else if (message.kind === 'opened') this.#release();
        else if (message.kind === 'refused' && message.may_pass) this.#refused(message.message);
        else if (message.kind === 'refused') this.#hooks.onFault(new Error(message.message));
        else this.#receive(message);
      });
    } catch {
      this.#waitForThread();
    }
  }

  /** The platform cannot start a thread for now: the writer stays here. */
  #waitForThread(): void {
    this.#worker = null;
    this.#workHere();
    this.#moved.resolve();
    this.#no_thread = this.#clock.after(RETRY_MS, () => {
      this.#no_thread = null;
      this.moveToThread();
    });
  }

  /** Ends the thread and releases the lock. */
  async end(): Promise<void> {
    this.#is_closing = true;
    this.#here?.stop();
    this.#no_thread?.cancel();
    await this.#worker?.terminate();
    this.#lock?.release();
  }

  #openHanded(): void {
    this.#toThread({ kind: 'open', previous: this.#previous, held: this.#lock?.identity ?? null });
  }

  #receive(message: FromWriter): void {
    if (message.kind === 'fault') this.#hooks.onFault(new Error(message.message));
    else this.#hooks.onMessage(message);
  }

  #start(): Worker {
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'cjs';
    const worker = new Worker(new URL(`./writer-thread.${extension}`, import.meta.url), {
      workerData: this.#settings,
      // Rows pass through and are gone: a small young generation is collected in a blink.
      resourceLimits: { maxYoungGenerationSizeMb: 8 },
    });
    worker.on('error', (error) => this.#lost(worker, error as Error));
    worker.on('exit', () => this.#lost(worker, new Error('the outbox writer thread ended')));
    this.#worker = worker;
    return worker;
  }

  #lost(worker: Worker, error: Error): void {
    if (!this.#here) this.#hooks.onFault(error);
    else if (this.#is_closing) this.#workHere();
    else if (this.#worker === worker) this.#waitForThread();
  }

  #toThread(message: ToWriterThread): void {
    this.#worker?.postMessage(packToThread(message));
  }

  /** Messages of one turn are handled together, after it. */
  #handleHere(message: ToWriter): void {
    this.#queue.push(message);
    if (this.#queue.length === 1) setImmediate(() => void this.#handleQueue());
  }

  async #handleQueue(): Promise<void> {
    const is_write = this.#queue.some(writes);
    if (is_write && this.#clock.monotonicMs() - this.#answered_ms > ANSWERED_MS) await this.#disk_answered();
    const messages = this.#queue.splice(0);
    const here = this.#here;
    // Otherwise they are moving.
    if (!here || messages.length === 0) return;
    here.handle(messages);
    if (is_write) this.#answered_ms = this.#clock.monotonicMs();
    if (here.has_unrecorded) this.moveToThread();
  }

  #workHere(): void {
    const held = this.#held ?? [];
    this.#held = null;
    // What `leave` has stopped goes on.
    if (this.#here?.has_unrecorded) void this.#disk_answered().then(() => this.#here?.handle([]));
    for (const message of held) this.#handleHere(message);
  }

  /** No append waits for a disk in trouble, which is reported; outcomes and calls wait. */
  #refused(trouble: string): void {
    this.#clock.after(RETRY_MS, () => this.#openHanded());
    const batches = this.#held?.flatMap(refusedBatch) ?? [];
    this.#held = this.#held?.flatMap(withoutAppends) ?? [];
    this.#receive({ kind: 'done', batches, counts: null, added: [], dropped: 0, trouble, commit_ms: 0 });
  }

  #release(): void {
    const here = this.#here ? [this.#here] : [];
    const held = [...here.flatMap((writer) => writer.unrecorded()), ...(this.#held ?? [])];
    this.#left.push(...here);
    this.#here = null;
    this.#held = null;
    for (const message of held) this.#toThread(message);
    this.#moved.resolve();
  }
}

/** Whether handling a message writes. What is read here is in memory: only a small outbox is opened in this thread. */
function writes(message: ToWriter): boolean {
  return message.kind === 'batch' || !READING_CALLS.has(message.name);
}
