import { constants } from 'node:fs';
import { type FileHandle, open, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { replaceFile, syncFolder } from '../base/durable-file.ts';
import type { ProcessEvent } from '../contract/events.ts';
import type { ProcessRequest } from '../contract/processes.ts';
import { parseProcessRequest } from './start/request.ts';

/**
 * What is on disk about a process, so that a daemon that was killed finds it again:
 * `<state-dir>/processes/<process_id>/process.json`, mode 0600 since a request may hold secrets in `env`.
 *
 * It is written before the process is started (without a `run`), when it has started, when it ends, and when
 * its events are stored. Where it is missing or damaged, the process is not known and the folder is removed; where it
 * cannot be read at present, the folder is kept and read again later.
 */
export interface ProcessRecord {
  process_id: string;
  request: ProcessRequest;
  command: [string, ...string[]];
  cwd: string;
  /** In the environment of every member of its tree. */
  mark: string;
  created_at_ms: number;
  restart_count: number;
  /** The present or last run; null until the first has a pid. */
  run: RunRecord | null;
  /** How it ended, once it has ended for good or waits for a restart. */
  end: EndRecord | null;
  /** Whether `end` is final: no restart follows. */
  is_final: boolean;
  /** Whether its members were stopped by signal for a pause. */
  is_stopped: boolean;
  /** Events that are not known to be stored, oldest first. */
  unsent: UnsentEvent[];
}

/** With the boot and the start time a pid names one process for good. */
export interface RunRecord {
  pid: number;
  boot_id: string;
  start_ticks: number;
  started_at_ms: number;
  /** When it had ended, in ticks after boot: see TreeRoot. Absent while it runs. */
  ended_ticks?: number;
  /** Null where no probe was asked for. */
  is_ready: boolean | null;
}

export interface EndRecord {
  kind: 'exited' | 'crashed';
  exit_code: number | null;
  signal: string | null;
  exited_at_ms: number;
}

/** `key` is the same for the same event also when it is emitted again after a restart. */
export interface UnsentEvent {
  key: string;
  event: ProcessEvent;
}

/** A longer file is written anew, with its last line alone. */
const FILE_MAX_BYTES = 256 * 1024;
/** What is read of a file, its end: more than a request and its events can take. */
const READ_MAX_BYTES = 16 * 1024 * 1024;
/** Only a file is written to: a link is not followed, and a pipe has nobody wait. */
const APPEND =
  constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
/** There is nothing by this name, or a link or a socket, which the daemon does not make. */
const NO_FILE = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO']);

/**
 * The file of a record: every save adds a line, and the last whole one counts. So a daemon that is killed in the
 * middle of one leaves the one before, and a save takes one step; calls that come while one is under way share the
 * next.
 */
export class RecordFile {
  readonly #record: ProcessRecord;
  #path: string;
  #file: FileHandle | null = null;
  #size_bytes = 0;
  #writing: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  constructor(folder: string, record: ProcessRecord) {
    this.#path = recordPath(folder);
    this.#record = record;
  }

  /** Where its folder is from now on. */
  moveTo(folder: string): void {
    this.#path = recordPath(folder);
  }

  /** Resolves when the record as it is at this call, or later, is on disk. */
  save(): Promise<void> {
    this.#next ??= (this.#writing ?? Promise.resolve())
      .catch(() => {})
      .then(() => {
        this.#writing = this.#next;
        this.#next = null;
        return this.#write();
      });
    return this.#next;
  }

  /** Resolves when the record and its place are on the disk, for as long as it is not final. */
  async sync(): Promise<void> {
    await this.save();
    await this.#file?.sync();
    const folder = dirname(this.#path);
    await syncFolder(folder);
    await syncFolder(dirname(folder));
  }

  /** Lets go of the file, once no save is under way. It is opened again where there is more. */
  async close(): Promise<void> {
    await (this.#next ?? this.#writing)?.catch(() => {});
    await this.#release();
  }

  async #write(): Promise<void> {
    // The line break comes first: behind a line that was cut off a new one begins.
    const line = `\n${JSON.stringify(this.#record)}`;
    if (this.#size_bytes > FILE_MAX_BYTES) return this.#rewrite(line);
    this.#file ??= await open(this.#path, APPEND, 0o600);
    await this.#file.writeFile(line);
    this.#size_bytes += line.length;
    if (this.#record.is_final && this.#record.unsent.length === 0) await this.#release();
  }

  async #rewrite(line: string): Promise<void> {
    await replaceFile(this.#path, line);
    this.#size_bytes = line.length;
    await this.#release();
  }

  async #release(): Promise<void> {
    const file = this.#file;
    this.#file = null;
    await file?.close();
  }
}

/** Makes the file of a record, with none in it. */
export function makeRecord(folder: string): Promise<void> {
  return writeFile(recordPath(folder), '', { mode: 0o600 });
}

/**
 * The record in `folder`, or null where there is none: no such file, or no line in it that is one. Throws the
 * system's error where that cannot be known.
 */
export async function loadRecord(folder: string): Promise<ProcessRecord | null> {
  for (const line of (await readEnd(recordPath(folder))).split('\n').reverse()) {
    const record = parsed(line);
    if (record) return record;
  }
  return null;
}

/** The end of a file as text; empty where there is no file of this name. */
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

function parsed(line: string): ProcessRecord | null {
  try {
    const record = JSON.parse(line);
    parseProcessRequest(record.request);
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
