import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { readProgramName, readStatus } from '../../../src/base/linux/procfs.ts';

const EVERY_MS = 50;
/** The whole process table is read only now and then. */
const LOOKS_PER_TABLE = 10;

/** The highest figures of a daemon under attack. */
export interface HighestFigures {
  /** Resident memory of the daemon's own process, by the kernel's own high-water mark. */
  resident_bytes: number;
  /** Resident memory of all its helper processes together, such as those of file operations. */
  helpers_bytes: number;
  threads: number;
  open_files: number;
}

/** Looks at a daemon and its helpers in `/proc` until it is stopped. */
export class Samples {
  readonly #pid: number;
  readonly #over = new AbortController();
  readonly #loop: Promise<void>;
  #looks = 0;
  readonly highest: HighestFigures = { resident_bytes: 0, helpers_bytes: 0, threads: 0, open_files: 0 };

  constructor(pid: number) {
    this.#pid = pid;
    this.#loop = this.#run();
  }

  async stop(): Promise<HighestFigures> {
    this.#over.abort();
    await this.#loop;
    return this.highest;
  }

  async #run(): Promise<void> {
    while (!this.#over.signal.aborted) {
      this.#look();
      await sleep(EVERY_MS, undefined, { signal: this.#over.signal }).catch(() => {});
    }
    this.#look();
  }

  #look(): void {
    const { highest } = this;
    const status = read(`/proc/${this.#pid}/status`);
    highest.resident_bytes = Math.max(highest.resident_bytes, kibOf(status, 'VmHWM'));
    highest.threads = Math.max(highest.threads, Number(/^Threads:\s+(\d+)/m.exec(status)?.[1] ?? 0));
    highest.open_files = Math.max(highest.open_files, count(`/proc/${this.#pid}/fd`));
    if (this.#looks++ % LOOKS_PER_TABLE > 0) return;
    const helpers = helpersOf(this.#pid);
    const bytes = helpers.reduce((sum, pid) => sum + residentBytes(pid), 0);
    highest.helpers_bytes = Math.max(highest.helpers_bytes, bytes);
  }
}

export function residentBytes(pid: number): number {
  return kibOf(read(`/proc/${pid}/status`), 'VmRSS');
}

/**
 * Children that run the daemon's own Node: helpers, not supervised processes. One that is just being started still has the
 * daemon's memory and command line.
 */
export function helpersOf(pid: number): number[] {
  const program = link(`/proc/${pid}/exe`);
  const command_line = read(`/proc/${pid}/cmdline`);
  const name = readProgramName(pid);
  const pids = readdirSync('/proc').filter((each) => /^\d+$/.test(each));
  // Whatever else is asked of a process may wait for a file system: of one of the daemon's own it does not.
  return pids
    .map(Number)
    .filter((each) => readStatus(each)?.parent === pid && readProgramName(each) === name)
    .filter((each) => link(`/proc/${each}/exe`) === program)
    .filter((each) => read(`/proc/${each}/cmdline`) !== command_line);
}

function kibOf(status: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0) * 1024;
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return ''; // it has ended
  }
}

function link(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

function count(path: string): number {
  try {
    return readdirSync(path).length;
  } catch {
    return 0;
  }
}
