import { type FileHandle, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ProcessEvent } from '../contract/events.ts';
import type { ProcessRequest } from '../contract/processes.ts';

/**
 * What is on disk about a process, so that a daemon that was killed finds it again:
 * `<state-dir>/processes/<process_id>/process.json`, mode 0600 since a request may hold secrets in `env`.
 *
 * It is written before the process is started (without a `run`), when it has started, when it ends, and when
 * its events are stored. Where it is missing or damaged, the process is not known and the folder is removed.
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

  /** Lets go of the file, once no save is under way. It is opened again where there is more. */
  async close(): Promise<void> {
    await (this.#next ?? this.#writing)?.catch(() => {});
    await this.#release();
  }

  async #write(): Promise<void> {
    // The line break comes first: behind a line that was cut off a new one begins.
    const line = `\n${JSON.stringify(this.#record)}`;
    if (this.#size_bytes > FILE_MAX_BYTES) return this.#rewrite(line);
    this.#file ??= await open(this.#path, 'a', 0o600);
    await this.#file.writeFile(line);
    this.#size_bytes += line.length;
    if (this.#record.is_final && this.#record.unsent.length === 0) await this.#release();
  }

  async #rewrite(line: string): Promise<void> {
    const temporary = `${this.#path}.new`;
    await writeFile(temporary, line, { mode: 0o600 });
    await rename(temporary, this.#path);
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

/** The record in `folder`, or null where there is none that can be read. */
export async function loadRecord(folder: string): Promise<ProcessRecord | null> {
  const text = await readFile(recordPath(folder), 'utf8').catch(() => '');
  for (const line of text.split('\n').reverse()) {
    const record = parsed(line);
    if (record) return record;
  }
  return null;
}

function parsed(line: string): ProcessRecord | null {
  try {
    const record = JSON.parse(line);
    return typeof record.process_id === 'string' && Array.isArray(record.unsent) ? record : null;
  } catch {
    return null;
  }
}

function recordPath(folder: string): string {
  return join(folder, 'process.json');
}

/** Removes a process's folder with everything in it. */
export function removeFolder(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true });
}
