import { systemClock } from '../../base/clock.ts';
import type { Answer } from '../../client/connector.ts';
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
  { sandbox, out }: Context,
  path: string,
  { user, ...interrupted }: AskAs,
  is_raw: boolean,
): Promise<void> {
  const body = new Body(await askFile(sandbox, path, { user, ...interrupted }));
  const content = out.content(is_raw);
  try {
    for await (const chunk of body) await content.write(chunk);
  } finally {
    await content.end();
  }
  if (body.is_broken) throw broken(path);
}

/** Writes what is in a directory of the sandbox into a local one, which is made if it is missing; `preserve` as of `cp`. */
export async function downloadTree(
  context: Context,
  from: string,
  to: string,
  { user, signal, preserve: is_trusted }: CopyAs & { preserve: boolean },
): Promise<ExitCode> {
  const answer = await context.sandbox.ask('GET', '/api/v1/files/archive', {
    query: { path: from, exact: true, user },
    headers: { accept: 'application/x-tar' },
    signal,
  });
  const progress = new Progress(from, null, context.err, systemClock);
  const body = new Body(answer, progress);
  const own = new OwnPlaces([]);
  const losses = new Losses(`:${from}`);
  const copy = { is_trusted, onLoss: (loss: Loss) => losses.add(loss) };
  try {
    await unpackArchive({ path: bytePath(to), data: body, copy, signal }, { own, journal: NO_JOURNAL });
  } catch (error) {
    if (body.is_broken) throw broken(from);
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
  { sandbox, err }: Context,
  from: string,
  { user, signal }: CopyAs,
  file: Destination,
): Promise<number> {
  let progress: Progress | null = null;
  let position = 0;
  let etag: string | null = null;
  for (let tries = 0; ; tries++) {
    const resumed: Record<string, string> =
      position > 0 && etag ? { range: `bytes=${position}-`, 'if-range': etag } : {};
    const answer = await askFile(sandbox, from, { user, signal }, resumed);
    if (answer.status !== 206) {
      if (position > 0 && !file.can_restart) throw broken(from);
      position = 0;
      await file.empty();
    }
    etag = answer.headers.get('etag');
    const length = answer.headers.get('content-length');
    progress ??= new Progress(from, length === null ? null : Number(length), err, systemClock);
    const before = position;
    const body = new Body(answer, progress);
    for await (const chunk of body) {
      await file.write(chunk, position);
      position += chunk.length;
    }
    if (!body.is_broken) break;
    signal.throwIfAborted();
    if (position > before) tries = 0;
    if (tries === TRIES_MAX || !etag) throw broken(from);
    await pause(RETRY_MS, signal);
  }
  await progress.end();
  return position;
}

function askFile(
  sandbox: Context['sandbox'],
  path: string,
  { user, signal }: AskAs,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const call = { query: { path, user }, headers: { accept: 'application/octet-stream', ...headers }, signal };
  return sandbox.ask('GET', '/api/v1/files', call);
}

/** The body of an answer up to its end, or to where it breaks off. Only the connection may break: a full disk here ends the command. */
class Body {
  is_broken = false;
  readonly #answer: Answer;
  readonly #progress: Progress | null;

  constructor(answer: Answer, progress: Progress | null = null) {
    this.#answer = answer;
    this.#progress = progress;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void> {
    const pieces = this.#answer.pieces()[Symbol.asyncIterator]();
    try {
      for (;;) {
        const piece = await pieces.next().catch(() => null);
        if (piece === null) this.is_broken = true;
        if (piece === null || piece.done) return;
        this.#progress?.add(piece.value.length);
        yield piece.value as Buffer;
      }
    } finally {
      await pieces.return?.();
    }
  }
}

function broken(path: string): Failure {
  return new Failure(EXIT.failed, `the daemon broke off while ${path} was sent: it may have changed`);
}
