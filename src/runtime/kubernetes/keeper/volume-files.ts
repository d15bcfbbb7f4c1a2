import {
  closeSync,
  constants,
  createReadStream,
  createWriteStream,
  lstatSync,
  mkdirSync,
  openSync,
  type ReadStream,
  readdirSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { RunningTool } from '../../../base/run-tool.ts';
import { ApiError } from '../../../contract/errors.ts';
import { OUTBOX_FILE, openOutboxCopy, PACKING, startTar, UNPACKING } from '../../disk/copy.ts';
import { ROOT_FOLDERS } from '../root/root-task.ts';
import { VOLUME } from './keeper-protocol.ts';

const FOLDER_ONLY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** A folder of the volume that a fork gets a copy of: what the sandbox works on, or what it has changed of its image. */
export type CopiedFolder = 'work' | 'root';

/**
 * Writes a folder as a tar stream, with modes, links and sparse files; for a root also what it says is removed of its image.
 * Throws `internal_error`.
 */
export async function packFolder(volume: string, copied: CopiedFolder, target: Writable): Promise<void> {
  const folder = placeOf(volume, copied);
  const named = ['--null', '--verbatim-files-from', '-T', '-'];
  const tar = await startTar(folder, ['pipe', 'pipe'], ...PACKING, ...named);
  const { stdin, stdout } = tar.program.child;
  // The folder itself is the cluster's, and that of the copy is made already.
  const names = readdirSync(folder, { encoding: 'buffer' });
  stdin?.on('error', () => {}); // it has ended; its exit is reported below
  stdin?.end(Buffer.concat(names.flatMap((name) => [Buffer.from('./'), name, Buffer.from([0])])));
  await Promise.all([pipeline(stdout as Readable, target), ended(tar)]);
}

/** Fills a folder from a tar stream. Throws `internal_error`. */
export async function unpackFolder(volume: string, copied: CopiedFolder, source: Readable): Promise<void> {
  const folder = placeOf(volume, copied);
  // Files of a root may be another's, as those of its image are; who has no capability can give none away.
  const owners = copied === 'root' ? ['--no-same-owner'] : [];
  const tar = await startTar(folder, ['pipe', 'ignore'], ...owners, ...UNPACKING);
  const { stdin } = tar.program.child;
  await Promise.all([pipeline(source, stdin as Writable).catch(() => {}), ended(tar)]);
}

function placeOf(volume: string, copied: CopiedFolder): string {
  if (copied === 'work') return join(volume, VOLUME.work);
  const folder = join(volume, VOLUME.root, ROOT_FOLDERS.upper);
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  return folder;
}

async function ended({ problem }: RunningTool): Promise<void> {
  const why = await problem;
  if (why !== null) throw new ApiError('internal_error', `The working folder could not be copied: ${why}`);
}

/** The copy of the outbox that a held daemon has made. Errors as in `openOutboxCopy`. */
export function readOutboxCopy(volume: string): ReadStream {
  const folder = openStateDir(volume);
  if (folder === null) throw new ApiError('internal_error', 'The source has lost its outbox.');
  try {
    return createReadStream('', { fd: openOutboxCopy(folder) });
  } finally {
    closeSync(folder);
  }
}

/** Makes the outbox of a daemon that has not begun. */
export async function writeOutbox(volume: string, source: Readable): Promise<void> {
  const folder = join(volume, VOLUME.state, VOLUME.state_dir);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  await pipeline(
    source,
    createWriteStream(join(folder, OUTBOX_FILE), { flags: 'wx', mode: 0o600, flush: true }),
  );
}

/** The state directory of an ended daemon; null if it is no directory any more. Nothing else may write to the volume. */
export function stateDir(volume: string): string | null {
  const path = join(volume, VOLUME.state, VOLUME.state_dir);
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ? path : null;
}

function openStateDir(volume: string): number | null {
  try {
    return openSync(join(volume, VOLUME.state, VOLUME.state_dir), FOLDER_ONLY);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
}
