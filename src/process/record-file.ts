import {
  closeSync,
  constants,
  fchmodSync,
  fsync as fsyncCallback,
  open as openCallback,
  openSync,
  type Stats,
  writeFile as writeFileCallback,
  writeFileSync,
} from 'node:fs';
import { type FileHandle, lstat, open, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Clock, Timer } from '../base/clock.ts';
import { replaceFile, syncFolder } from '../base/durable-file.ts';
import type { ProcessRequest } from '../contract/processes.ts';
import { keptOf, type ProcessRecord } from './record.ts';

/** Bare descriptors, which can also be written in place. */
const openFile = promisify(openCallback);
const writeFile = promisify(writeFileCallback);
const syncFile = promisify(fsyncCallback);

/** Records that were appended beyond this are replaced by the last of them alone. */
const RECORDS_MAX_BYTES = 256 * 1024;
/** How much is read from one end of a file at first; where no whole line is in it, more, up to the most. */
const READ_BYTES = 64 * 1024;
/** More than a request or a record with its events can take. */
const READ_MAX_BYTES = 16 * 1024 * 1024;
/** The modes of the file while the process may go on, and once nothing in it changes any more: see `isMarkedOver`. */
const OPEN_MODE = 0o600;
const OVER_MODE = 0o400;
const SAVE_DELAY_MS = 100;
/** A process that has run this long also survives a power cut. */
const SYNC_DELAY_MS = 1_000;
/** Only regular files are opened: links are not followed, and opening a pipe does not block. */
const APPEND =
  constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
/** There is nothing by this name, or a link or a socket, which the daemon never creates. */
const NO_FILE = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO']);

/** What a file of a record begins with. */
export interface RecordFileStart {
  /** The request of a new process; absent if the file is there. */
  request?: ProcessRequest;
  /** Bytes that are there. */
  size_bytes?: number;
  /** Whether it is marked already. */
  is_over?: boolean;
  /** Whether nothing changes any more. */
  isOver?: () => boolean;
}

/** A record that was read, and what its file is like. */
export interface KeptRecord {
  record: ProcessRecord;
  /** Size of the file. */
  size_bytes: number;
  /** Whether nothing changes any more, and the file is marked so. */
  is_over: boolean;
}

/**
 * The file of a record, `<state-dir>/processes/<process_id>/process.json`, mode 0600 since a request may hold secrets in
 * `env`. Its first line holds the whole request. Every save appends the record as a line, and the last complete line
 * counts: a daemon that is killed during a save leaves the line before it. Calls during a save share the next one.
 *
 * Once nothing changes any more the file is made read-only: the next daemon need not read it to know that.
 */
export class RecordFile {
  readonly #record: ProcessRecord;
  readonly #path: string;
  readonly #isOver: () => boolean;
  /** Null once it is on disk. */
  #request: ProcessRequest | null;
  #file: number | null = null;
  #size_bytes: number;
  /** Bytes of the records appended by this daemon since the last was alone. */
  #appended_bytes = 0;
  #is_over: boolean;
  #writing: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  /** `record` is read at each save. */
  constructor(folder: string, record: ProcessRecord, start: RecordFileStart = {}) {
    this.#path = recordPath(folder);
    this.#record = record;
    this.#request = start.request ?? null;
    this.#size_bytes = start.size_bytes ?? 0;
    this.#is_over = start.is_over ?? false;
    this.#isOver = start.isOver ?? (() => false);
  }

  /** Bytes on disk. */
  get size_bytes(): number {
    return this.#size_bytes;
  }

  /** Whether the last save was the very last: it was made when nothing changed any more. */
  get is_over(): boolean {
    return this.#is_over;
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
    if (this.#next !== null || this.#writing !== null || this.#appended_bytes > RECORDS_MAX_BYTES)
      return this.save();
    const lines = this.#lines();
    this.#file ??= openSync(this.#path, APPEND, OPEN_MODE);
    writeFileSync(this.#file, lines);
    this.#noteWritten(lines);
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
    if (this.#is_over) return;
    if (this.#appended_bytes > RECORDS_MAX_BYTES) return this.#rewrite();
    const lines = this.#lines();
    this.#file ??= await openFile(this.#path, APPEND, OPEN_MODE);
    await writeFile(this.#file, lines);
    this.#noteWritten(lines);
    if (this.#isOver()) {
      fchmodSync(this.#file, OVER_MODE); // in place: the disk has just answered
      this.#is_over = true;
    }
    if (this.#record.is_final && this.#record.unsent.length === 0) this.#release();
  }

  /** The line break comes first: the line before may have been cut off. */
  #lines(): string {
    const record = `\n${JSON.stringify(this.#record)}`;
    if (this.#request === null) return record;
    return `\n${JSON.stringify({ request: this.#request })}${record}`;
  }

  #noteWritten(lines: string): void {
    const bytes = Buffer.byteLength(lines);
    this.#size_bytes += bytes;
    if (this.#request === null) this.#appended_bytes += bytes;
    this.#request = null;
  }

  async #rewrite(): Promise<void> {
    const request = await readFirstLine(this.#path);
    const lines = `\n${request ?? ''}${this.#lines()}`;
    await replaceFile(this.#path, lines);
    this.#size_bytes = Buffer.byteLength(lines);
    this.#appended_bytes = 0;
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
    start: RecordFileStart,
    onError: (error: unknown, message: string) => void,
  ) {
    this.#clock = clock;
    this.#record = record;
    this.file = new RecordFile(folder, record, start);
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
 * The record in `folder` with the size of its file, or null if there is none: no such file, or no valid line in it. No more
 * is read than its last line takes. A mark that is not true, as a power cut may leave it, is taken away. Throws the
 * system's error if the file cannot be read.
 */
export async function loadRecord(folder: string): Promise<KeptRecord | null> {
  return withFile(folder, async (file, { size: size_bytes, mode }) => {
    // Loaded only where a daemon left processes: schemas cost start-up time.
    const { problemOf } = await import('../base/schema.ts');
    const { ProcessBody } = await import('../contract/processes.ts');
    const isRequest = (value: unknown) => problemOf(ProcessBody, value) === null;
    for await (const text of growing(file, size_bytes, 'end')) {
      const lines = text.split('\n').filter((line) => line !== '');
      for (const line of lines.reverse()) {
        const record = parsed(line, isRequest);
        if (!record) continue;
        const is_marked = (mode & 0o777) === OVER_MODE;
        const is_over = is_marked && record.is_final && record.unsent.length === 0;
        if (is_marked && !is_over) await file.chmod(OPEN_MODE);
        return { record, size_bytes, is_over };
      }
    }
    return null;
  });
}

/**
 * The whole request of the process in `folder`, or null if there is no valid one. Throws the system's error if the file
 * cannot be read.
 */
export async function loadRequest(folder: string): Promise<ProcessRequest | null> {
  const line = await readFirstLine(recordPath(folder));
  if (line === null) return null;
  const { parseProcessRequest } = await import('./start/parse-request.ts');
  try {
    return parseProcessRequest(JSON.parse(line).request);
  } catch {
    return null;
  }
}

/** Whether nothing changes any more in the record in `folder`, as its mode says; see RecordFile. Does not read it. */
export async function isMarkedOver(folder: string): Promise<boolean> {
  const stats = await lstat(recordPath(folder)).catch(() => null);
  return stats?.isFile() === true && (stats.mode & 0o777) === OVER_MODE;
}

async function readFirstLine(path: string): Promise<string | null> {
  return withFile(dirname(path), async (file, { size: size_bytes }) => {
    for await (const text of growing(file, size_bytes, 'start')) {
      const begin = text.search(/[^\n]/);
      const end = text.indexOf('\n', begin);
      if (begin >= 0 && end > 0) return text.slice(begin, end);
      if (begin >= 0 && Buffer.byteLength(text) >= size_bytes) return text.slice(begin);
    }
    return null;
  });
}

/** Runs `use` with the file of the record in `folder`; null if there is none. Throws the system's error. */
async function withFile<Result>(
  folder: string,
  use: (file: FileHandle, stats: Stats) => Promise<Result>,
): Promise<Result | null> {
  const file = await open(recordPath(folder), READ).catch((error: NodeJS.ErrnoException) => {
    if (NO_FILE.has(error.code ?? '')) return null;
    throw error;
  });
  if (!file) return null;
  try {
    const stats = await file.stat();
    return stats.isFile() ? await use(file, stats) : null;
  } finally {
    await file.close();
  }
}

/** One end of a file as text: little, then four times as much as before, until it is all or the most. */
async function* growing(file: FileHandle, size_bytes: number, end: 'start' | 'end'): AsyncGenerator<string> {
  for (let wanted = READ_BYTES; ; wanted *= 4) {
    const length = Math.min(size_bytes, wanted, READ_MAX_BYTES);
    const at = end === 'start' ? 0 : size_bytes - length;
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(length), 0, length, at);
    yield buffer.toString('utf8', 0, bytesRead);
    if (length === size_bytes || length === READ_MAX_BYTES) return;
  }
}

function parsed(line: string, isRequest: (value: unknown) => boolean): ProcessRecord | null {
  try {
    const record = JSON.parse(line);
    if (!isRecord(record) || !isRequest(record.request)) return null;
    // Records of earlier versions hold the whole request.
    return record.fingerprint === undefined ? { ...record, ...keptOf(record.request) } : record;
  } catch {
    return null;
  }
}

function isRecord(record: ProcessRecord): boolean {
  const { process_id, command, cwd, mark, fingerprint, created_at_ms, restart_count, run, end, unsent } =
    record;
  const texts = [process_id, cwd, mark, fingerprint ?? 'none'];
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
