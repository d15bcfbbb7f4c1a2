import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { replaceFileNow } from '../../base/durable-file.ts';
import type { Log } from '../../base/log.ts';
import { toolProblem } from '../../base/run-tool.ts';
import { ApiError } from '../../contract/errors.ts';
import { readUndeliveredApart } from '../../outbox/sqlite/undelivered/hand-over-process.ts';
import { HANDED_OVER_FILES } from '../../outbox/sqlite/undelivered/undelivered-reader.ts';
import type { SandboxDisks } from '../disk/sandbox-disks.ts';
import { openStateDir } from '../rootfs.ts';
import type { Fence, HandOverTrust, UndeliveredPage } from '../runtime.ts';
import { stepsOf } from '../steps.ts';
import type { SandboxFiles } from './sandbox-files.ts';

/** Cannot be the id of a sandbox. */
const KEPT = '.damaged-outboxes';
const DAMAGED = 'damaged';
const SET_ASIDE = /^outbox-(unsalvaged|damaged)-\d{1,9}\.db(-wal|-shm|-journal)?$/;
const SET_ASIDE_MAX = 100;
const KEPT_MS = 24 * 60 * 60 * 1000;
/** Bounds the disk space: an outbox larger than any can be is not kept, and the oldest ones are removed first. */
const KEPT_MAX_BYTES = 1024 * 1024 * 1024;
const KEPT_TOTAL_BYTES = 4 * KEPT_MAX_BYTES;

/**
 * Moves an ended sandbox's outbox out of its root, beyond the sandbox's reach, and returns the folder. Links on the way
 * are not followed. May be repeated after an interruption. Null if the state directory is no directory any more.
 */
export function takeOutbox({ outbox: target, rootfs }: SandboxFiles): string | null {
  mkdirSync(target, { recursive: true, mode: 0o700 });
  const state_dir = openStateDir(rootfs);
  if (state_dir === null) return readdirSync(target).length > 0 ? target : null;
  try {
    for (const name of namesIn(`/proc/self/fd/${state_dir}`)) {
      const from = `/proc/self/fd/${state_dir}/${name}`;
      if (!lstatSync(from, { throwIfNoEntry: false }) || existsSync(join(target, name))) continue;
      renameSync(from, join(target, name));
    }
  } finally {
    closeSync(state_dir);
  }
  return target;
}

/** The outbox's files in a state directory, including those that the daemon has set aside. */
function namesIn(state_dir: string): string[] {
  const set_aside = readdirSync(state_dir).filter((name) => SET_ASIDE.test(name));
  return [...HANDED_OVER_FILES, ...set_aside.slice(0, SET_ASIDE_MAX)];
}

/** Marks a sandbox's outbox as damaged, so that it is preserved. */
export function noteDamage({ outbox }: SandboxFiles): void {
  replaceFileNow(join(outbox, DAMAGED), '');
}

/** Reads what an ended sandbox's daemon had not delivered. Throws `conflict` if the sandbox has not ended. */
export async function* undeliveredOf(
  files: SandboxFiles,
  trust: HandOverTrust,
  { clock, disks }: { clock: Clock; disks: Pick<SandboxDisks, 'attach'> },
  fence?: Fence,
): AsyncGenerator<UndeliveredPage> {
  const { sandbox_id } = files;
  const record = files.readRecord();
  if (!record || record.state === 'creating') return;
  if (record.state !== 'ended') throw new ApiError('conflict', 'The sandbox has not ended.');
  const begin = stepsOf(fence, () => files.takenBy());
  await begin('mount the disk again');
  const why = await disks.attach(files);
  if (why !== null) throw new Error(`the disk cannot be mounted: ${why}`);
  await begin('take the outbox');
  const state_dir = takeOutbox(files);
  if (state_dir === null) {
    const trouble = 'the state directory and its records are missing';
    yield { records: [], lost_records: 0, set_aside: 0, trouble };
    return;
  }
  const record_key = record.has_record_key ? trust.record_key : null;
  await begin('read the outbox');
  for await (const page of readUndeliveredApart({ ...trust, sandbox_id, record_key, state_dir }, clock)) {
    if (page.trouble !== null) noteDamage(files);
    await begin('hand a page over');
    yield page;
  }
}

/** Preserves damaged outboxes for a day, for people to examine. Source: contract section 3. */
export class DamagedOutboxes {
  readonly #folder: string;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #max_bytes: number;

  constructor(data_dir: string, clock: Clock, log: Log, max_bytes = KEPT_MAX_BYTES) {
    this.#folder = join(data_dir, KEPT);
    this.#clock = clock;
    this.#log = log;
    this.#max_bytes = max_bytes;
  }

  /**
   * Moves an outbox that is marked as damaged out of the sandbox's directory; others are left. One for which there is no
   * room is given up: nothing keeps a sandbox from being removed.
   */
  async preserve({ sandbox_id, outbox }: SandboxFiles): Promise<void> {
    if (!existsSync(join(outbox, DAMAGED))) return;
    const path = join(this.#folder, sandbox_id);
    const bytes = sizeOf(outbox);
    if (bytes > this.#max_bytes) {
      this.#log.error({ sandbox_id, bytes }, 'a damaged outbox is too large to keep');
      return;
    }
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    rmSync(path, { recursive: true, force: true });
    const why = await moveFolder(outbox, path);
    if (why !== null) {
      rmSync(path, { recursive: true, force: true });
      this.#log.error({ sandbox_id, why }, 'a damaged outbox could not be kept');
      return;
    }
    const now_s = this.#clock.wallMs() / 1000;
    utimesSync(path, now_s, now_s);
    this.#log.error({ sandbox_id, path }, 'a damaged outbox is kept for 24 h');
    this.prune();
  }

  /** Removes outboxes older than 24 h, and the oldest ones beyond 4 GiB in all. */
  prune(): void {
    const names = existsSync(this.#folder) ? readdirSync(this.#folder) : [];
    const kept = names.map((name) => {
      const path = join(this.#folder, name);
      return { path, kept_ms: statSync(path).mtimeMs, bytes: sizeOf(path) };
    });
    let total = 0;
    for (const { path, kept_ms, bytes } of kept.sort((a, b) => b.kept_ms - a.kept_ms)) {
      total += bytes;
      if (this.#clock.wallMs() - kept_ms <= KEPT_MS && total <= KEPT_TOTAL_BYTES) continue;
      rmSync(path, { recursive: true, force: true });
    }
  }
}

/** Moves a folder of files, also to another disk: then its regular files alone. Null, or why it could not be done. */
async function moveFolder(from: string, to: string): Promise<string | null> {
  try {
    renameSync(from, to);
    return null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error;
  }
  mkdirSync(to, { mode: 0o700 });
  const entries = readdirSync(from, { withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = entries.map(({ name }) => join(from, name));
  return toolProblem('cp', '--no-dereference', '--sparse=always', '--target-directory', to, '--', ...paths);
}

/** The disk space of a folder's files in bytes; an outbox has no folders. */
function sizeOf(folder: string): number {
  return readdirSync(folder).reduce((sum, name) => sum + lstatSync(join(folder, name)).blocks * 512, 0);
}
