import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdtemp, open, rename, rm, stat } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../base/clock.ts';
import { kernelRandom } from '../../base/entropy.ts';
import { temporaryName } from '../../contract/temporary-file.ts';
import { unpackArchive } from '../../files/archive/unpack.ts';
import { bytePath } from '../../files/byte-path.ts';
import { UploadJournal } from '../../files/change/upload-journal.ts';
import { OwnPlaces } from '../../files/own-places.ts';
import type { Context } from '../context.ts';
import { EXIT, Failure } from '../failure.ts';
import { pause } from '../pause.ts';
import { interruptible } from './interruptible.ts';
import { Progress } from './progress.ts';
import type { AsUser } from './sandbox-files.ts';

/** How often a broken download goes on where it broke, without a byte in between. */
const TRIES_MAX = 5;
const RETRY_MS = 500;
/** Whoever is in the sandbox has no say in what runs here with another account's rights. */
const PERMISSIONS = 0o777;
/** The media type of files. */
const BYTES = 'application/octet-stream';

/**
 * Writes a file of the sandbox to a local path as cp(1) does: through a link to what it leads to, and into what is there,
 * which keeps its mode, owner and names. A new file appears whole or not at all. A broken connection is taken up where it
 * broke, but for what takes bytes only once, such as a pipe. What is no file, pipe or device for characters is refused.
 */
export async function downloadFile(
  context: Context,
  from: string,
  to: string,
  mode: string,
  as: AsUser,
): Promise<void> {
  const found = await stat(to).catch(unlessGone);
  if (found === null) return downloadNew(context, from, to, mode, as);
  const is_file = found.isFile();
  if (!is_file && !found.isFIFO() && !found.isCharacterDevice())
    throw new Failure(EXIT.failed, `${to} is no file: nothing is written to it`);
  const file = await open(to, constants.O_WRONLY | constants.O_NOCTTY);
  try {
    await interruptible(async (interrupted) => {
      if (is_file) await receive(context, from, as, file, interrupted);
      else await pass(context, from, as, file, interrupted);
    });
    if (is_file) await file.sync();
  } finally {
    await file.close();
  }
}

async function downloadNew(
  context: Context,
  from: string,
  to: string,
  mode: string,
  as: AsUser,
): Promise<void> {
  if ((await lstat(to).catch(unlessGone)) !== null)
    throw new Failure(EXIT.failed, `${to} is a link to what is not there`);
  const cut = to.lastIndexOf('/') + 1;
  const aside = to.slice(0, cut) + temporaryName(kernelRandom(12).toString('hex'));
  await interruptible(async (interrupted) => {
    const file = await open(aside, 'wx', 0o600);
    try {
      await receive(context, from, as, file, interrupted);
      await file.chmod(Number.parseInt(mode, 8) & PERMISSIONS);
      await file.sync();
      await rename(aside, to);
    } finally {
      await file.close();
      await rm(aside, { force: true });
    }
  });
}

function unlessGone(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}

/** Prints the bytes of a file of the sandbox. */
export async function printFile({ client, out }: Context, path: string, as: AsUser): Promise<void> {
  const response = await client.stream('/files', { type: BYTES, query: { path, ...as } });
  for await (const chunk of response) await out.write(chunk);
  if (!response.complete) throw broken(path);
}

/** Writes what is in a directory of the sandbox into a local one, which is made if it is missing. */
export async function downloadTree(context: Context, from: string, to: string, as: AsUser): Promise<void> {
  const response = await context.client.stream('/files/archive', {
    type: 'application/x-tar',
    query: { path: from, ...as },
  });
  const progress = new Progress(from, null, context.err, systemClock);
  response.on('data', (chunk: Buffer) => progress.add(chunk.length)).pause();
  const own = new OwnPlaces([]);
  await interruptible(async (signal) => {
    endWith(signal, response);
    const folder = await mkdtemp(join(tmpdir(), 'sandboxctl-'));
    const journal = new UploadJournal(folder);
    try {
      await unpackArchive(
        { path: bytePath(to), data: response.iterator({ destroyOnReturn: false }), signal },
        { own, journal },
      );
    } catch (error) {
      throw response.complete ? error : broken(from);
    } finally {
      await journal.close();
      await rm(folder, { recursive: true, force: true });
      await progress.end();
    }
  });
}

/** Has an answer end once the command is interrupted, or at once if it is; returns what ends that. */
function endWith(interrupted: AbortSignal, response: IncomingMessage): () => void {
  const leave = () => response.destroy();
  if (interrupted.aborted) leave();
  interrupted.addEventListener('abort', leave);
  return () => interrupted.removeEventListener('abort', leave);
}

/** Passes bytes on to what has no positions. */
async function pass(
  { client }: Context,
  from: string,
  as: AsUser,
  file: FileHandle,
  interrupted: AbortSignal,
): Promise<void> {
  const response = await client.stream('/files', { type: BYTES, query: { path: from, ...as } });
  endWith(interrupted, response);
  for await (const chunk of response as AsyncIterable<Buffer>) {
    for (let done = 0; done < chunk.length; ) done += (await file.write(chunk, done)).bytesWritten;
  }
  if (!response.complete) throw broken(from);
}

async function receive(
  { client, err }: Context,
  from: string,
  as: AsUser,
  file: FileHandle,
  interrupted: AbortSignal,
): Promise<void> {
  const query = { path: from, ...as };
  let progress: Progress | null = null;
  let position = 0;
  let etag: string | undefined;
  for (let tries = 0; ; tries++) {
    const resumed = position > 0 && etag ? { range: `bytes=${position}-`, 'if-range': etag } : {};
    const response = await client.stream('/files', { type: BYTES, query, headers: resumed });
    const stay = endWith(interrupted, response);
    if (response.statusCode !== 206) position = 0;
    etag = response.headers.etag;
    const length = response.headers['content-length'];
    progress ??= new Progress(from, length === undefined ? null : Number(length), err, systemClock);
    const before = position;
    position = await store(response, file, position, progress);
    stay();
    if (response.complete) break;
    if (interrupted.aborted) throw broken(from);
    if (position > before) tries = 0;
    if (tries === TRIES_MAX || !etag) throw broken(from);
    await pause(RETRY_MS, interrupted);
  }
  await file.truncate(position);
  await progress.end();
}

/** Returns the position after the last byte that has arrived. */
async function store(
  response: IncomingMessage,
  file: FileHandle,
  start: number,
  progress: Progress,
): Promise<number> {
  let position = start;
  const chunks = response[Symbol.asyncIterator]();
  for (;;) {
    // Only the connection may break: a full disk here ends the command.
    const next = await chunks.next().catch(() => null);
    if (next === null || next.done) return position;
    const chunk: Buffer = next.value;
    for (let done = 0; done < chunk.length; ) {
      done += (await file.write(chunk, done, chunk.length - done, position + done)).bytesWritten;
    }
    position += chunk.length;
    progress.add(chunk.length);
  }
}

function broken(path: string): Failure {
  return new Failure(EXIT.failed, `the daemon broke off while ${path} was sent: it may have changed`);
}
