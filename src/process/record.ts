import {
  closeSync,
  constants,
  fsync as fsyncCallback,
  open as openCallback,
  openSync,
  writeFile as writeFileCallback,
  writeFileSync,
} from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { type Clock, type Timer, timestamp } from '../base/clock.ts';
import { replaceFile, syncFolder } from '../base/durable-file.ts';
import { kernelRandom } from '../base/entropy.ts';
import type { ProcessEvent } from '../contract/events.ts';
import type { ProcessState, ProcessView } from '../contract/processes.ts';
import type { ProcessRequest } from '../contract/schema/process-request.ts';
import { commandOf } from './start/command.ts';

/**
 * What is on disk about a process, so that the next daemon finds it after this one was killed:
 * `<state-dir>/processes/<process_id>/process.json`, mode 0600 since a request may hold secrets in `env`.
 *
 * It is written before the process is started (without a `run`), when it has started, when it ends, and when its events
 * are stored. If it is missing or damaged, the process is unknown and the folder is removed. If it cannot be read right
 * now, the folder is kept and read again later.
 */
export interface ProcessRecord {
  process_id: string;
  request: ProcessRequest;
  command: [string, ...string[]];
  cwd: string;
  /** The tag in the environment of every member of its tree; `mark` is its name on disk. */
  mark: string;
  created_at_ms: number;
  restart_count: number;
  /** The present or last run; null until the first has a pid. */
  run: RunRecord | null;
  /** How the last run ended; null while a run is in progress. */
  end: EndRecord | null;
  /** Whether `end` is final: no restart follows. */
  is_final: boolean;
  /** Whether its members were stopped by signal for a pause. */
  is_stopped: boolean;
  /** Whether a lossless follower is expected from the first byte. Absent in records of earlier versions. */
  is_lossless?: boolean;
  /** Events that may not be stored yet, oldest first. */
  unsent: UnsentEvent[];
}

/** One run. The pid, the boot and the start time together name one process for good. */
export interface RunRecord {
  pid: number;
  boot_id: string;
  start_ticks: number;
  started_at_ms: number;
  /** The account that it was started as; null is the daemon's own. Absent in records of earlier versions. */
  user?: string | null;
  /** When it was known to have ended, in ticks after boot: see TreeRoot. Absent while it runs. */
  ended_ticks?: number;
  /** Null if the request has no ready probe. */
  is_ready: boolean | null;
}

/** How a run ended. `exit_code` is null if it is unknown. `timed_out` and `duration_ms` are absent in records of earlier versions. */
export interface EndRecord {
  kind: 'exited' | 'crashed';
  exit_code: number | null;
  signal: string | null;
  timed_out?: boolean;
  exited_at_ms: number;
  duration_ms?: number;
}

/** An event that may not be stored yet. `key` names it, also when it is emitted again after a restart. */
export interface UnsentEvent {
  key: string;
  event: ProcessEvent;
}

/** The record of a process that is to be started. `is_lossless`: see ProcessRecord. */
export function newRecord(
  process_id: string,
  request: ProcessRequest,
  created_at_ms: number,
  is_lossless: boolean,
): ProcessRecord {
  return {
    process_id,
    request,
    command: commandOf(request),
    cwd: resolve(request.cwd ?? '.'),
    mark: kernelRandom(12).toString('hex'),
    created_at_ms,
    restart_count: 0,
    run: null,
    end: null,
    is_final: false,
    is_stopped: false,
    is_lossless,
    unsent: [],
  };
}

/** Puts an event of the present run into the record, where it stays until it is stored. */
export function addUnsent(record: ProcessRecord, what: 'started' | 'ended', event: ProcessEvent): void {
  const { mark, restart_count, unsent } = record;
  unsent.push({ key: `${mark}.${restart_count}.${what}`, event });
}

/** The process as the API gives it, without its usage. */
export function viewOf(record: ProcessRecord, state: ProcessState): Omit<ProcessView, 'resource_usage'> {
  const { process_id, request, command, cwd, created_at_ms, run, end, restart_count } = record;
  const started_at_ms = run?.started_at_ms ?? created_at_ms;
  return {
    process_id,
    name: request.name ?? null,
    pid: run?.pid ?? 0,
    state,
    command,
    cwd,
    user: run?.user ?? request.user ?? null,
    exit_code: end?.exit_code ?? null,
    signal: end?.signal ?? null,
    timed_out: end?.timed_out ?? false,
    started_at: timestamp(started_at_ms),
    exited_at: end ? timestamp(end.exited_at_ms) : null,
    duration_ms: end ? (end.duration_ms ?? Math.max(0, end.exited_at_ms - started_at_ms)) : null,
    restart_count,
    ready: run?.is_ready ?? null,
  };
}

/** Bare descriptors, which can also be written in place. */
const openFile = promisify(openCallback);
const writeFile = promisify(writeFileCallback);
const syncFile = promisify(fsyncCallback);

/** A longer file is replaced by one with its last line alone. */
const FILE_MAX_BYTES = 256 * 1024;
/** How much is read from the end of a file: more than a request and its events can take. */
const READ_MAX_BYTES = 16 * 1024 * 1024;
const SAVE_DELAY_MS = 100;
/** A process that has run this long also survives a power cut. */
const SYNC_DELAY_MS = 1_000;
/** Only regular files are opened: links are not followed, and opening a pipe does not block. */
const APPEND =
  constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
/** There is nothing by this name, or a link or a socket, which the daemon never creates. */
const NO_FILE = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO']);

/**
 * The file of a record. Every save appends a line, and the last complete line counts: a daemon that is killed during a
 * save leaves the line before it. Calls during a save share the next one.
 */
export class RecordFile {
  readonly #record: ProcessRecord;
  readonly #path: string;
  #file: number | null = null;
  #size_bytes = 0;
  #writing: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  /** `record` is read at each save. */
  constructor(folder: string, record: ProcessRecord) {
    this.#path = recordPath(folder);
    this.#record = record;
  }

  /** Resolves when the record as of this call, or later, is written. Rejects with the system's error. */
  save(): Promise<void> {
    this.#next ??= (this.#writing ?? Promise.resolve())
      .catch(() => {})
      .then(() => {
        this.#writing = this.#next;
        this.#next = null;
        return this.#write();
      })
      .finally(() => {
        this.#writing = null;
      });
    return this.#next;
  }

  /**
   * Like `save`, but has written when it returns, unless another save is under way: to be called when the disk has just
   * answered.
   */
  async saveInPlace(): Promise<void> {
    if (this.#next !== null || this.#writing !== null || this.#size_bytes > FILE_MAX_BYTES)
      return this.save();
    const line = this.#line();
    this.#file ??= openSync(this.#path, APPEND, 0o600);
    writeFileSync(this.#file, line);
    this.#size_bytes += line.length;
  }

  /** Resolves when the record and its folder survive a power cut. Rejects with the system's error. */
  async sync(): Promise<void> {
    await this.save();
    if (this.#file !== null) await syncFile(this.#file);
    const folder = dirname(this.#path);
    await syncFolder(folder);
    await syncFolder(dirname(folder));
  }

  /** Closes the file, once no save is under way. Another save opens it again. */
  async close(): Promise<void> {
    await (this.#next ?? this.#writing)?.catch(() => {});
    this.#release();
  }

  async #write(): Promise<void> {
    const line = this.#line();
    if (this.#size_bytes > FILE_MAX_BYTES) return this.#rewrite(line);
    this.#file ??= await openFile(this.#path, APPEND, 0o600);
    await writeFile(this.#file, line);
    this.#size_bytes += line.length;
    if (this.#record.is_final && this.#record.unsent.length === 0) this.#release();
  }

  /** The line break comes first: the line before may have been cut off. */
  #line(): string {
    return `\n${JSON.stringify(this.#record)}`;
  }

  async #rewrite(line: string): Promise<void> {
    await replaceFile(this.#path, line);
    this.#size_bytes = line.length;
    this.#release();
  }

  #release(): void {
    const file = this.#file;
    this.#file = null;
    if (file !== null) closeSync(file);
  }
}

/** Decides when the record of a process is written, and reports errors of the disk instead of throwing them. */
export class RecordSaver {
  /** The file itself, for a start, which must know whether the record was written. */
  readonly file: RecordFile;
  readonly #clock: Clock;
  readonly #record: ProcessRecord;
  readonly #onError: (error: unknown, message: string) => void;
  #save_timer: Timer | null = null;
  #sync_timer: Timer | null = null;

  /** `onError` is called with every error that `save` and the timers meet. */
  constructor(
    clock: Clock,
    folder: string,
    record: ProcessRecord,
    onError: (error: unknown, message: string) => void,
  ) {
    this.#clock = clock;
    this.#record = record;
    this.file = new RecordFile(folder, record);
    this.#onError = onError;
  }

  /** Saves the record now. Never rejects. */
  save(): Promise<void> {
    this.#save_timer?.cancel();
    this.#save_timer = null;
    return this.file.save().catch((error) => this.#onFailure(error));
  }

  /** Like `save`, but in place: see RecordFile. Never rejects. */
  async saveInPlace(): Promise<void> {
    await this.file.saveInPlace().catch((error) => this.#onFailure(error));
  }

  /** Saves within 100 ms, together with other changes made meanwhile: for changes that may be lost without harm. */
  saveSoon(): void {
    this.#save_timer ??= this.#clock.after(SAVE_DELAY_MS, () => void this.save());
  }

  /** Syncs the record once, a second after the first call: later changes matter only while the process is alive. */
  syncLater(): void {
    this.#sync_timer ??= this.#clock.after(SYNC_DELAY_MS, () => void this.#sync());
  }

  /** Stops the sync that is scheduled. */
  cancelSync(): void {
    this.#sync_timer?.cancel();
  }

  /** Closes the file without another save. Resolves when no save is under way. */
  async close(): Promise<void> {
    this.#save_timer?.cancel();
    await this.file.close();
  }

  #onFailure(error: unknown): void {
    this.#onError(error, 'a process record could not be saved');
  }

  async #sync(): Promise<void> {
    if (this.#record.is_final) return;
    await this.file.sync().catch((error) => this.#onError(error, 'a process record could not be synced'));
  }
}

/**
 * The record in `folder`, or null if there is none: no such file, or no valid line in it. Throws the system's error if
 * the file cannot be read.
 */
export async function loadRecord(folder: string): Promise<ProcessRecord | null> {
  const lines = (await readEnd(recordPath(folder))).split('\n');
  // Loaded only where a daemon left processes: schemas cost start-up time.
  const { parseProcessRequest } = await import('./start/parse-request.ts');
  for (const line of lines.reverse()) {
    const record = parsed(line, parseProcessRequest);
    if (record) return record;
  }
  return null;
}

/** The end of a file as text; empty if there is no file of this name. */
async function readEnd(path: string): Promise<string> {
  const file = await open(path, READ).catch((error: NodeJS.ErrnoException) => {
    if (NO_FILE.has(error.code ?? '')) return null;
    throw error;
  });
  if (!file) return '';
  try {
    const stats = await file.stat();
    if (!stats.isFile()) return '';
    const length = Math.min(stats.size, READ_MAX_BYTES);
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(length), 0, length, stats.size - length);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}

function parsed(line: string, parseRequest: (value: unknown) => ProcessRequest): ProcessRecord | null {
  try {
    const record = JSON.parse(line);
    parseRequest(record.request);
    return isRecord(record) ? record : null;
  } catch {
    return null;
  }
}

function isRecord(record: Record<keyof ProcessRecord, unknown>): boolean {
  const { process_id, command, cwd, mark, created_at_ms, restart_count, run, end, unsent } = record;
  const texts = [process_id, cwd, mark];
  const parts = [run, end];
  return (
    texts.every((text) => typeof text === 'string' && text !== '') &&
    [created_at_ms, restart_count].every(Number.isFinite) &&
    Array.isArray(command) &&
    command.length > 0 &&
    command.every((argument) => typeof argument === 'string') &&
    parts.every((part) => part === null || typeof part === 'object') &&
    Array.isArray(unsent) &&
    unsent.every((item) => typeof item?.key === 'string' && typeof item.event?.payload === 'object')
  );
}

function recordPath(folder: string): string {
  return join(folder, 'process.json');
}

/** Removes a process's folder with everything in it. */
export function removeFolder(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true });
}
