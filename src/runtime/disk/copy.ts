import { spawn } from 'node:child_process';
import { chmodSync, closeSync, constants, copyFileSync, lchownSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { ApiError } from '../../contract/errors.ts';
import { placeStateDir, STATE_DIR } from '../rootfs.ts';
import { OUTBOX, openOutboxCopy } from './outbox-copy.ts';
import { PACKING, tarIn, tarProblem, UNPACKING } from './tar.ts';

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
  const unpack = spawn('/bin/sh', tarIn(target, ...UNPACKING), { stdio: ['pipe', 'ignore', 'pipe'] });
  const owners = owner === null ? [] : [`--owner=sandbox:${owner}`, `--group=sandbox:${owner}`];
  const what = ['--anchored', `--exclude=.${STATE_DIR}`, '.'];
  const pack = spawn('/bin/sh', tarIn(source, ...owners, ...PACKING, ...what), {
    stdio: ['ignore', unpack.stdin, 'pipe'],
  });
  unpack.stdin.destroy(); // the other program holds it
  const ends = await Promise.all([pack, unpack].map(tarProblem));
  const failed = ends.find((end) => end !== null);
  if (failed) throw new ApiError('internal_error', `The root file system could not be copied: ${failed}`);
  const outbox = join(placeStateDir(target, owner), OUTBOX);
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
