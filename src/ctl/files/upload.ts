import { closeSync, constants, open as openNumber } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { Socket } from 'node:net';
import { Readable, Transform } from 'node:stream';
import { promisify } from 'node:util';
import { systemClock } from '../../base/clock.ts';
import { Pack } from '../../files/archive/pack.ts';
import type { Loss } from '../../files/archive/tree-copy.ts';
import { bytePath, systemPath } from '../../files/byte-path.ts';
import { Directory } from '../../files/directory.ts';
import { modeText } from '../../files/mode.ts';
import { OwnPlaces } from '../../files/own-places.ts';
import { isPseudo } from '../../files/regular-file.ts';
import type { Context } from '../context.ts';
import { EXIT, type ExitCode, Failure, reason } from '../failure.ts';
import { Losses } from './losses.ts';
import { Progress } from './progress.ts';
import type { CopyAs } from './sandbox-files.ts';

const FILES = '/api/v1/files';
const CHUNK_BYTES = 256 * 1024;

/**
 * Writes a local file to a path of the sandbox, with its mode where nothing is there yet. One that becomes shorter or
 * longer meanwhile is a failure that names it. What has no true length, such as a file of the kernel, is read to its end.
 */
export async function uploadFile(
  context: Context,
  from: string,
  to: string,
  { is_new, ...as }: CopyAs & { is_new: boolean },
): Promise<void> {
  const file = await open(from, constants.O_RDONLY | constants.O_NOCTTY).catch((error) => {
    throw sourceFailure(from, error);
  });
  try {
    await sendFile(context, file, from, to, is_new, as);
  } finally {
    // A read that waits, such as of a terminal, does not hold up an interruption.
    const closing = file.close();
    if (!as.signal.aborted) await closing;
  }
}

async function sendFile(
  context: Context,
  file: FileHandle,
  from: string,
  to: string,
  is_new: boolean,
  as: CopyAs,
): Promise<void> {
  const stat = await file.stat();
  const mode = is_new ? modeText(stat.mode) : undefined;
  // Files of the kernel, such as those in /proc and /sys, say nothing true.
  const has_length = stat.isFile() && stat.size > 0 && !(stat.blocks === 0 && (await isPseudo(file)));
  const length = has_length ? stat.size : null;
  const options = { autoClose: false, highWaterMark: CHUNK_BYTES };
  const data = file.createReadStream(length === null ? options : { ...options, start: 0, end: length - 1 });
  const query = { path: to, mode, user: as.user };
  const request = length === null ? { query } : { query, headers: { 'content-length': String(length) } };
  await send(context, FILES, request, data, from, length, as);
  if (length !== null) await checkLength(file, from, length);
}

/** Writes what comes out of a local pipe, from when somebody writes to it, to a path of the sandbox. */
export async function uploadPipe(context: Context, from: string, to: string, as: CopyAs): Promise<void> {
  const fd = await openedPipe(from, as.signal).catch((error) => {
    throw sourceFailure(from, error);
  });
  // Unlike the reading of a file, this can be broken off while nothing comes.
  const data = new Socket({ fd, readable: true, writable: false });
  await send(context, FILES, { query: { path: to, user: as.user } }, data, from, null, as);
}

/** Waits until somebody writes to it, or the signal aborts, which rejects. */
async function openedPipe(path: string, signal: AbortSignal): Promise<number> {
  const opening = promisify(openNumber)(path, constants.O_RDONLY);
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      reject(signal.reason);
      opening.then(closeSync, () => {});
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort);
    opening.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

/** Writes stdin to a path of the sandbox. */
export async function uploadStream(context: Context, input: Readable, to: string, as: CopyAs): Promise<void> {
  await send(context, FILES, { query: { path: to, user: as.user } }, input, 'stdin', null, as);
}

/**
 * Writes what is in a local directory into one of the sandbox, which is made if it is missing. Names what it leaves out, and
 * returns the exit code.
 */
export async function uploadTree(context: Context, from: string, to: string, as: CopyAs): Promise<ExitCode> {
  const losses = new Losses(from);
  const own = new OwnPlaces([]);
  const directory = await Directory.open(systemPath(bytePath(from)), own).catch((error) => {
    throw sourceFailure(from, error);
  });
  const copy = { onLoss: (loss: Loss) => losses.add(loss) };
  const entries = await Pack.ofDirectory(directory, { own, signal: as.signal, copy });
  const archive = Readable.from(entries, { objectMode: false });
  const headers = { 'content-type': 'application/x-tar' };
  const query = { path: to, exact: true, user: as.user };
  await send(context, `${FILES}/archive`, { query, headers }, archive, from, null, as);
  return losses.tell(context.err);
}

async function send(
  { sandbox, err }: Context,
  path: string,
  request: { query: Record<string, unknown>; headers?: Record<string, string> },
  data: Readable,
  name: string,
  total_bytes: number | null,
  { signal }: CopyAs,
): Promise<void> {
  const progress = new Progress(name, total_bytes, err, systemClock);
  let left_bytes = total_bytes ?? 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      progress.add(chunk.length);
      left_bytes -= chunk.length;
      done(null, chunk);
    },
    flush(done) {
      const is_cut = left_bytes > 0;
      done(is_cut ? new Failure(EXIT.failed, `${name} became shorter while it was copied`) : null);
    },
  });
  data.once('error', (error) => counted.destroy(sourceFailure(name, error)));
  try {
    await sandbox.ask('PUT', path, { ...request, body: data.pipe(counted), timeout_ms: 0, signal });
  } catch (error) {
    // What is not read to its end is closed all the same.
    data.destroy();
    throw error;
  }
  await progress.end();
}

async function checkLength(file: FileHandle, name: string, length: number): Promise<void> {
  if ((await file.stat()).size <= length) return;
  throw new Failure(
    EXIT.failed,
    `${name} became longer while it was copied; its first ${length} bytes were copied`,
  );
}

/** A source that cannot be read, by name. */
function sourceFailure(name: string, error: unknown): Failure {
  return error instanceof Failure ? error : new Failure(EXIT.failed, `${name}: ${reason(error)}`);
}
