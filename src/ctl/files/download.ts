import type { IncomingMessage } from 'node:http';
import { systemClock } from '../../base/clock.ts';
import { ApiError } from '../../contract/errors.ts';
import type { Loss } from '../../files/archive/tree-copy.ts';
import { unpackArchive } from '../../files/archive/unpack.ts';
import { bytePath } from '../../files/byte-path.ts';
import { newTemporary } from '../../files/change/new-temporary.ts';
import { OwnPlaces } from '../../files/own-places.ts';
import type { Context } from '../context.ts';
import { EXIT, type ExitCode, Failure } from '../failure.ts';
import { pause } from '../pause.ts';
import { type Destination, openDestination } from './destination.ts';
import { Losses } from './losses.ts';
import { Progress } from './progress.ts';
import type { AskAs, CopyAs } from './sandbox-files.ts';

/** How often a broken download goes on where it broke, without a byte in between. */
const TRIES_MAX = 5;
const RETRY_MS = 500;
/** This program removes what it leaves itself, and no later one looks for it. */
const NO_JOURNAL = {
  temporaryIn: async () => ({
    name: newTemporary().name,
    forget: async () => {},
  }),
};
/** The media type of files. */
const BYTES = 'application/octet-stream';

/**
 * Writes a file of the sandbox to a local path; a broken connection is taken up where it broke. A new
 * file appears whole, with this mode; what is there is written into, once the first bytes can come.
 */
export async function downloadFile(
  context: Context,
  from: string,
  to: string,
  mode: number,
  as: CopyAs,
): Promise<void> {
  const destination = await openDestination(to, as.signal);
  try {
    const size = await receive(context, from, as, destination);
    as.signal.throwIfAborted();
    await destination.finish(size, mode);
  } finally {
    await destination.close();
  }
}

/** Prints a file of the sandbox: its bytes, unless stdout is a terminal and it is not to be `is_raw`. */
export async function printFile(
  { client, out }: Context,
  path: string,
  { user, ...interrupted }: AskAs,
  is_raw: boolean,
): Promise<void> {
  const response = await client.stream('/files', { type: BYTES, query: { path, user }, ...interrupted });
  const content = out.content(is_raw);
  try {
    for await (const chunk of response) await content.write(chunk);
  } finally {
    await content.end();
  }
  if (!response.complete) throw broken(path);
}

/** Writes what is in a directory of the sandbox into a local one, which is made if it is missing; `preserve` as of `cp`. */
export async function downloadTree(
  context: Context,
  from: string,
  to: string,
  { user, signal, preserve: is_trusted }: CopyAs & { preserve: boolean },
): Promise<ExitCode> {
  const response = await context.client.stream('/files/archive', {
    type: 'application/x-tar',
    query: { path: from, exact: 'true', user },
    signal,
  });
  const progress = new Progress(from, null, context.err, systemClock);
  response.on('data', (chunk: Buffer) => progress.add(chunk.length)).pause();
  const own = new OwnPlaces([]);
  const losses = new Losses(`:${from}`);
  const copy = { is_trusted, onLoss: (loss: Loss) => losses.add(loss) };
  try {
    const data = response.iterator({ destroyOnReturn: false });
    await unpackArchive({ path: bytePath(to), data, copy, signal }, { own, journal: NO_JOURNAL });
  } catch (error) {
    if (!response.complete) throw broken(from);
    throw error instanceof ApiError ? new Failure(EXIT.failed, namedError(error, to)) : error;
  } finally {
    await progress.end();
  }
  return losses.tell(context.err);
}

/** The message of an error, with the path that it is about. */
function namedError({ message, details }: ApiError, to: string): string {
  const { path } = (details ?? {}) as { path?: unknown };
  return typeof path !== 'string' || message.includes(path) ? `${to}: ${message}` : `${path}: ${message}`;
}

/** Returns the number of bytes. */
async function receive(
  { client, err }: Context,
  from: string,
  { user, signal }: CopyAs,
  file: Destination,
): Promise<number> {
  const query = { path: from, user };
  let progress: Progress | null = null;
  let position = 0;
  let etag: string | undefined;
  for (let tries = 0; ; tries++) {
    const resumed = position > 0 && etag ? { range: `bytes=${position}-`, 'if-range': etag } : {};
    const response = await client.stream('/files', { type: BYTES, query, headers: resumed, signal });
    if (response.statusCode !== 206) {
      if (position > 0 && !file.can_restart) throw broken(from);
      position = 0;
      await file.empty();
    }
    etag = response.headers.etag;
    const length = response.headers['content-length'];
    progress ??= new Progress(from, length === undefined ? null : Number(length), err, systemClock);
    const before = position;
    position = await store(response, file, position, progress);
    if (response.complete) break;
    signal.throwIfAborted();
    if (position > before) tries = 0;
    if (tries === TRIES_MAX || !etag) throw broken(from);
    await pause(RETRY_MS, signal);
  }
  await progress.end();
  return position;
}

/** Returns the position after the last byte that has arrived. */
async function store(
  response: IncomingMessage,
  file: Destination,
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
    await file.write(chunk, position);
    position += chunk.length;
    progress.add(chunk.length);
  }
}

function broken(path: string): Failure {
  return new Failure(EXIT.failed, `the daemon broke off while ${path} was sent: it may have changed`);
}
