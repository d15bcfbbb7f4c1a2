import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  fstatSync,
  lchownSync,
  mkdirSync,
  openSync,
} from 'node:fs';
import { join } from 'node:path';
import { type RunningTool, startTool } from '../../base/run-tool.ts';
import type { ProgramFile } from '../../base/start-program.ts';
import { ApiError } from '../../contract/errors.ts';
import { placeStateDir, STATE_DIR } from '../rootfs.ts';

/** The name of the copy that a held daemon makes of its outbox, in its state directory. */
const OUTBOX_COPY = 'outbox-copy.db';
/** The name of an outbox in its state directory. */
export const OUTBOX_FILE = 'outbox.db';

/**
 * `tar` with at most 512 MiB of the host's memory: it keeps the paths of all folders on its way, and a sandbox can nest
 * folders as deep as it has inodes.
 */
const BOUNDED = ['/bin/sh', '-c', 'ulimit -v 524288 && exec tar "$@"', 'tar'];
const FLAGS = ['--xattrs', '--acls', '--numeric-owner'];

/** Starts `tar` in `folder`, with owners, modes, attributes and links as they are. `files`: its stdin and stdout. */
export function startTar(
  folder: string,
  files: readonly [stdin: ProgramFile, stdout: ProgramFile],
  ...args: string[]
): Promise<RunningTool> {
  const command = [...BOUNDED, '-C', folder, ...FLAGS, ...args];
  return startTool(command, [...files, 'pipe'], { path: process.env.PATH });
}

/** Unpacks what comes on standard input. */
export const UNPACKING = ['-xpf', '-'];
/** Packs to standard output, sparse files as such. */
export const PACKING = ['--sparse', '--warning=no-file-ignored', '-cf', '-'];

/**
 * Copies the root of a quiescent sandbox, with owners, modes, links and sparse files. Of the state directory only the
 * copy of the outbox is taken, which the daemon made for this purpose; the rest belongs to the source. `source_state_dir`:
 * a descriptor of it. Everything gets `owner`, the copy's only user; null: owners stay. Links in the source are followed
 * neither there nor in the copy, also if it changes meanwhile. Throws `internal_error` with the first line that `tar`
 * reports.
 */
export async function copyRootfs(
  source: string,
  source_state_dir: number,
  target: string,
  owner: number | null,
): Promise<void> {
  mkdirSync(target, { recursive: true, mode: 0o755 });
  const unpack = await startTar(target, ['pipe', 'ignore'], ...UNPACKING);
  const { stdin } = unpack.program.child;
  const owners = owner === null ? [] : [`--owner=sandbox:${owner}`, `--group=sandbox:${owner}`];
  const what = ['--anchored', `--exclude=.${STATE_DIR}`, '.'];
  const pack = await startTar(source, ['ignore', stdin], ...owners, ...PACKING, ...what);
  stdin?.destroy(); // the other program holds it
  const ends = await Promise.all([pack.problem, unpack.problem]);
  const failed = ends.find((end) => end !== null);
  if (failed) throw new ApiError('internal_error', `The root file system could not be copied: ${failed}`);
  const outbox = join(placeStateDir(target, owner), OUTBOX_FILE);
  copyOutbox(source_state_dir, outbox);
  chmodSync(outbox, 0o600);
  if (owner !== null) lchownSync(outbox, owner, owner);
}

function copyOutbox(from_state_dir: number, to: string): void {
  const file = openOutboxCopy(from_state_dir);
  try {
    copyFileSync(`/proc/self/fd/${file}`, to, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
  } finally {
    closeSync(file);
  }
}

/**
 * Opens the copy of the outbox in a state directory, given by its descriptor, for reading. What the sandbox's processes may
 * have put in its place is refused: a link would lead to any file of the host, and a pipe nowhere. Throws `internal_error`.
 */
export function openOutboxCopy(state_dir: number): number {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = openSync(`/proc/self/fd/${state_dir}/${OUTBOX_COPY}`, flags);
  if (fstatSync(file).isFile()) return file;
  closeSync(file);
  throw new ApiError('internal_error', 'The source has lost its outbox.');
}
