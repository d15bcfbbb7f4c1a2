import { readFile, rename, rm, writeFile } from 'node:fs/promises';
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

/** Writes a record; calls that come while a write is under way share the next one. */
export class RecordFile {
  readonly #path: string;
  readonly #record: ProcessRecord;
  #writing: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  constructor(folder: string, record: ProcessRecord) {
    this.#path = join(folder, 'process.json');
    this.#record = record;
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

  async #write(): Promise<void> {
    const temporary = `${this.#path}.new`;
    await writeFile(temporary, JSON.stringify(this.#record), { mode: 0o600 });
    await rename(temporary, this.#path);
  }
}

/** The record in `folder`, or null where there is none that can be read. */
export async function loadRecord(folder: string): Promise<ProcessRecord | null> {
  try {
    const record = JSON.parse(await readFile(join(folder, 'process.json'), 'utf8'));
    return typeof record.process_id === 'string' && Array.isArray(record.unsent) ? record : null;
  } catch {
    return null;
  }
}

/** Removes a process's folder with everything in it. */
export function removeFolder(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true });
}
