import {
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { replaceFileNow } from '../../base/durable-file.ts';
import type { ProcessIdentity } from './host-process.ts';

/** The record of a sandbox in `sandbox.json`; it holds no secret. */
export interface LocalRecord {
  sandbox_id: string;
  team_id: string;
  memory_mib: number;
  cpu_millis: number;
  watch_dir: string | null;
  /** The version of the daemon's program that it was started from. */
  program_version: string;
  /** `creating` until its daemon is ready; `ending` once its end was requested; `ended` when nothing of it runs. */
  state: 'creating' | 'created' | 'ending' | 'ended';
  outcome: 'killed' | 'lost' | null;
  /** The last state requested: the answer while its daemon gives none. */
  is_paused: boolean;
  /** The bound on its memory while it is paused, in MiB; null or missing: that is all of `memory_mib`. */
  held_mib?: number | null;
  /** Whether its daemon authenticates its records; missing if an older version started it. */
  has_record_key?: boolean;
  /** Its user and group id on this machine; null or missing: the manager's. */
  user?: number | null;
  /** `host:port` of its webhook, if that leaves through the manager; otherwise null, or missing in an older record. */
  webhook_authority?: string | null;
  /** Whether its network namespace, and so its ports, are its own; missing in an older record, whose daemon passes none. */
  has_own_network?: boolean;
  /** `RuntimeSpec.note`; missing in an older record. */
  note?: string;
  /** As the host sees the process; null until it runs. */
  daemon: ProcessIdentity | null;
}

/** The file that holds a sandbox's disk, in its directory. */
export const DISK_IMAGE = 'disk.img';

const TAKEN = /^taken-(\d{1,15})$/;

/** The daemon's log is emptied when it is longer than this. */
const LOG_MAX_BYTES = 4 * 1024 * 1024;

/** A sandbox's directory. Source: `rootfs-layout.md`, "What the local runtime keeps". */
export class SandboxFiles {
  readonly sandbox_id: string;
  readonly directory: string;
  /** Where the sandbox's disk is mounted, with everything that it can write; missing where its disk is not bounded. */
  readonly disk: string;
  /** The file that holds its disk. */
  readonly disk_image: string;
  readonly log: string;
  readonly #data_dir_fd: number;

  /** `data_dir_fd`: a descriptor of `data_dir` that stays open. */
  constructor(data_dir: string, data_dir_fd: number, sandbox_id: string) {
    this.sandbox_id = sandbox_id;
    this.directory = join(data_dir, sandbox_id);
    this.disk = join(this.directory, 'disk');
    this.disk_image = join(this.directory, DISK_IMAGE);
    this.log = join(this.directory, 'daemon.log');
    this.#data_dir_fd = data_dir_fd;
  }

  /** The sandbox's `/`. */
  get rootfs(): string {
    return this.#onDisk('rootfs');
  }

  /** The sandbox's `/run/sandboxd`, in which the daemon creates its socket. */
  get run(): string {
    return this.#onDisk('run');
  }

  /** The same socket under a name that the sandbox can neither reach nor replace. */
  get control_socket(): string {
    return this.#onDisk('control.sock');
  }

  /** A short path to it, valid in this process alone: the kernel limits a socket's path to 107 bytes. */
  get socket_address(): string {
    const within = relative(dirname(this.directory), this.control_socket);
    return `/proc/self/fd/${this.#data_dir_fd}/${within}`;
  }

  /** Where the stopped daemon's outbox is taken, out of the sandbox's root. */
  get outbox(): string {
    return this.#onDisk('outbox');
  }

  #onDisk(name: string): string {
    return join(existsSync(this.disk) ? this.disk : this.directory, name);
  }

  get #record(): string {
    return join(this.directory, 'sandbox.json');
  }

  /** The record, or null if there is none. */
  readRecord(): LocalRecord | null {
    try {
      return JSON.parse(readFileSync(this.#record, 'utf8')) as LocalRecord;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }

  /**
   * Replaces the record; a crash or a power cut leaves the old one or the new one. On a full disk the daemon's log gives
   * way: a sandbox can always be ended.
   */
  writeRecord(record: LocalRecord): void {
    const content = `${JSON.stringify(record)}\n`;
    try {
      replaceFileNow(this.#record, content);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC' || !existsSync(this.log)) throw error;
      truncateSync(this.log);
      replaceFileNow(this.#record, content);
    }
  }

  /** The highest number of an operation on it that a replica has taken over; 0 for none. */
  takenBy(): number {
    try {
      const numbers = readdirSync(this.directory).map((name) => Number(TAKEN.exec(name)?.[1] ?? 0));
      return Math.max(0, ...numbers);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
      throw error;
    }
  }

  /** Notes such a number, in the name of an empty file: an earlier one that is noted later changes nothing. */
  noteTaken(number: number): void {
    try {
      closeSync(openSync(join(this.directory, `taken-${number}`), 'a', 0o600));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }

  /** A descriptor to which the daemon's log is appended. */
  openLog(): number {
    const file = openSync(this.log, 'a', 0o600);
    chmodSync(this.log, 0o600);
    return file;
  }

  /** Empties the daemon's log if it is longer than 4 MiB. */
  trimLog(): void {
    if ((statSync(this.log, { throwIfNoEntry: false })?.size ?? 0) > LOG_MAX_BYTES) truncateSync(this.log);
  }

  /** The last line of the daemon's log, which says why it did not start. */
  lastLogLine(): string {
    try {
      return readFileSync(this.log, 'utf8').trimEnd().split('\n').at(-1) ?? '';
    } catch (error) {
      return (error as Error).message;
    }
  }
}
