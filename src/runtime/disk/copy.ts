import { spawn } from 'node:child_process';
import { once } from 'node:events';
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
import { text } from 'node:stream/consumers';
import { ApiError } from '../../contract/errors.ts';
import { placeStateDir, STATE_DIR } from '../rootfs.ts';

const OUTBOX_COPY = 'outbox-copy.db';
const OUTBOX = 'outbox.db';
/**
 * `tar` with at most 512 MiB of the host's memory: it keeps the paths of all folders on its way, and a sandbox can nest
 * folders as deep as it has inodes.
 */
const TAR = ['-c', 'ulimit -v 524288 && exec tar "$@"', 'tar'];
const FLAGS = ['--xattrs', '--acls', '--numeric-owner'];

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
  const unpack = spawn('/bin/sh', [...TAR, '-C', target, ...FLAGS, '-xpf', '-'], {
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  const owners = owner === null ? [] : [`--owner=sandbox:${owner}`, `--group=sandbox:${owner}`];
  const pack = spawn(
    '/bin/sh',
    [
      ...TAR,
      '-C',
      source,
      ...FLAGS,
      ...owners,
      '--sparse',
      '--warning=no-file-ignored',
      '--anchored',
      `--exclude=.${STATE_DIR}`,
      '-cf',
      '-',
      '.',
    ],
    { stdio: ['ignore', unpack.stdin, 'pipe'] },
  );
  unpack.stdin.destroy(); // the other program holds it
  const ends = await Promise.all(
    [pack, unpack].map(async (program) => {
      const [output, [code]] = await Promise.all([text(program.stderr), once(program, 'close')]);
      return code === 0 ? null : output.trim().split('\n')[0] || `tar exited with ${code}`;
    }),
  );
  const failed = ends.find((end) => end !== null);
  if (failed) throw new ApiError('internal_error', `The root file system could not be copied: ${failed}`);
  const outbox = join(placeStateDir(target, owner), OUTBOX);
  copyRegularFile(`/proc/self/fd/${source_state_dir}/${OUTBOX_COPY}`, outbox);
  chmodSync(outbox, 0o600);
  if (owner !== null) lchownSync(outbox, owner, owner);
}

/** A link would lead to any file of the host, and a pipe nowhere. */
function copyRegularFile(from: string, to: string): void {
  const file = openSync(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    if (!fstatSync(file).isFile()) throw new ApiError('internal_error', 'The source has lost its outbox.');
    copyFileSync(`/proc/self/fd/${file}`, to, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
  } finally {
    closeSync(file);
  }
}
