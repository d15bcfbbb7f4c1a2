import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import { type Clock, systemClock } from '../../../base/clock.ts';
import { keepHeapSmall } from '../../../base/engine/heap.ts';
import type { HttpExchange } from '../../../base/http/app.ts';
import { allowLongBody, takeUpgrade } from '../../../base/http/listener.ts';
import { checkQueryText } from '../../../base/http/query.ts';
import { disconnectSignal } from '../../../base/http/sse-response.ts';
import { invalidField } from '../../../contract/errors.ts';
import type {
  ArchiveQuery,
  FileListQuery,
  FileRemoveQuery,
  FileWriteQuery,
  TwoPathsBody,
  UnpackQuery,
} from '../../../contract/files.ts';
import { type BytePath, parsePath, pathFields } from '../../../files/byte-path.ts';
import type { TwoPaths } from '../../../files/change/two-places.ts';
import { checkUnconditional, writeConditions } from '../../../files/conditions.ts';
import { withPath } from '../../../files/file-error.ts';
import type { Files } from '../../../files/files.ts';
import { freeBuffer } from '../../../files/free-buffer.ts';
import type { FileThreads } from '../../../files/thread/file-threads.ts';
import { checkHandshake } from '../process-attach.ts';
import { BodyWriter } from './body-writer.ts';
import type { CallsUnderWay } from './calls-under-way.ts';
import { DIRECT_HEADER, DIRECT_REST_HEADER, type DirectBodies, directBody } from './direct-bodies.ts';
import { answerDownload } from './download.ts';
import type { FileHandler, FileRoute } from './file-routes.ts';
import { WatchConnection } from './watch/watch-connection.ts';
import type { WatchedTrees } from './watch/watched-trees.ts';

type WriteQuery = Static<typeof FileWriteQuery>;

/** The longest frame of a client that watches: a path and little else. */
const FRAME_MAX_BYTES = 64 * 1024;
/** How often the daemon is told that work goes on, in ms. */
const STEPS_TOLD_MS = 5_000;
/** What `success` puts around data, here around what is JSON already. */
const [SUCCESS, SUCCESS_END] = [Buffer.from('{"success":true,"data":'), Buffer.from('}')];

/** What the requests of one account are answered with. */
export interface AccountFiles {
  clock: Clock;
  calls: CallsUnderWay;
  own: Files;
  /** For lists and archives. */
  threads: FileThreads;
  /** What clients watch. */
  trees: WatchedTrees;
  /** Connections of clients that take the bodies of downloads. */
  direct: DirectBodies;
}

type Answering = (files: AccountFiles, exchange: HttpExchange) => Promise<unknown>;

/** Makes the handler that answers with the rights of this process. */
export function answering(files: AccountFiles): FileHandler {
  return ({ answer }, exchange) => files.calls.run(exchange.reply, () => ANSWERS[answer](files, exchange));
}

/** Answers GET and HEAD `/files`. */
async function answerRead(files: AccountFiles, exchange: HttpExchange): Promise<void> {
  const path = pathOf(exchange.request);
  const file = await files.own.open(path);
  await withPath(path, () => answerDownload(file, files.clock, files.direct, exchange));
}

/** Answers GET `/files/stat`. */
async function answerStat({ own }: AccountFiles, { request }: HttpExchange): Promise<unknown> {
  return await own.stat(pathOf(request));
}

/** Answers GET `/files/list`. */
async function answerList({ threads }: AccountFiles, { request, reply }: HttpExchange): Promise<unknown> {
  const { depth, limit, cursor } = request.query as Static<typeof FileListQuery>;
  const page = await threads.list({ path: pathOf(request), depth, limit, cursor });
  reply.type('application/json; charset=utf-8');
  const body = Buffer.concat([SUCCESS, page, SUCCESS_END]);
  freeBuffer(page);
  return body;
}

/** Answers POST and PUT `/files`: an upload, or a directory to make. */
async function answerWrite(files: AccountFiles, exchange: HttpExchange): Promise<unknown> {
  const { request } = exchange;
  const query = request.query as WriteQuery;
  const path = pathOf(request);
  if (!query.mkdir) return upload(files, path, query, exchange);
  checkUnconditional(request.headers);
  if (request.method === 'PUT') throw invalidField('mkdir', 'is accepted with POST only');
  return makeDirectory(files, path, query, exchange);
}

/** Answers once the uploaded file is in its place and synced. Source: contract section 4, "Files". */
async function upload(
  { own, direct }: AccountFiles,
  path: BytePath,
  query: WriteQuery,
  exchange: HttpExchange,
): Promise<unknown> {
  const { request, reply } = exchange;
  const conditions = writeConditions(request.headers);
  allowLongBody(request, reply);
  keepHeapSmall();
  const gone = disconnectSignal(reply);
  const { size, etag } = await own.write({
    path,
    mode: modeOf(query),
    parents: query.parents,
    conditions,
    data: bodyOf(direct, exchange, gone),
    signal: gone,
  });
  reply.header('etag', etag);
  return { written: true, ...pathFields(path), size, etag };
}

/** The body of an upload, whose larger part may be read past the daemon. */
function bodyOf(direct: DirectBodies, { request, reply }: HttpExchange, gone: AbortSignal): Readable {
  const { [DIRECT_HEADER]: number, [DIRECT_REST_HEADER]: rest } = request.headers;
  if (typeof number !== 'string' || typeof rest !== 'string') {
    // Once there is where to write it.
    request.raw.once('resume', () => tellStep(reply));
    return request.raw;
  }
  const tell = stepTeller(reply);
  const connect = () => {
    const connection = direct.connection(number, gone);
    // The daemon passes it now, and knows that there is where to write it.
    tellStep(reply);
    return connection;
  };
  return Readable.from(directBody(request.raw, Number(rest), connect, tell), { objectMode: false });
}

async function makeDirectory(
  { own }: AccountFiles,
  path: BytePath,
  query: WriteQuery,
  { request, reply }: HttpExchange,
): Promise<unknown> {
  request.raw.resume();
  const created = await own.makeDirectory({ path, recursive: query.recursive, mode: modeOf(query) });
  reply.code(201);
  return { created };
}

function modeOf({ mode }: WriteQuery): number | null {
  return mode === undefined ? null : Number.parseInt(mode, 8);
}

/** Answers GET `/files/archive`. */
async function answerPack(files: AccountFiles, exchange: HttpExchange): Promise<void> {
  const path = pathOf(exchange.request);
  const { format, exact: is_exact } = exchange.request.query as Static<typeof ArchiveQuery>;
  const gone = disconnectSignal(exchange.reply);
  const archive = await files.threads.pack(path, gone, { is_exact });
  await withPath(path, () => sendArchive(archive, format, gone, exchange));
}

/**
 * Sends an archive while it is made. Errors before its first bytes are thrown, as errors of the file system; later ones
 * break the connection.
 */
async function sendArchive(
  archive: AsyncGenerator<Buffer, void>,
  format: 'tar' | 'tar.gz',
  gone: AbortSignal,
  { request, reply }: HttpExchange,
): Promise<void> {
  const { raw } = reply;
  const first = await archive.next();
  reply.hijack();
  raw.writeHead(200, {
    'content-type': format === 'tar' ? 'application/x-tar' : 'application/gzip',
    'cache-control': 'no-store',
    'x-request-id': request.id,
  });
  const body = new BodyWriter(raw, gone);
  try {
    const whole = startingWith(first, archive);
    for await (const chunk of format === 'tar' ? whole : gzipped(whole)) {
      await body.write(chunk);
      freeBuffer(chunk);
    }
    raw.end();
  } catch {
    raw.destroy();
  } finally {
    await archive.return();
  }
}

async function* startingWith(
  first: IteratorResult<Buffer, void>,
  rest: AsyncGenerator<Buffer, void>,
): AsyncGenerator<Buffer, void> {
  if (!first.done) yield first.value;
  yield* rest;
}

function gzipped(archive: AsyncGenerator<Buffer, void>): AsyncIterable<Buffer> {
  const source = Readable.from(archive, { objectMode: false });
  const gzip = createGzip();
  source.once('error', (error) => gzip.destroy(error));
  gzip.once('close', () => source.destroy());
  return source.pipe(gzip);
}

/** Answers PUT `/files/archive`. */
async function answerUnpack({ threads }: AccountFiles, exchange: HttpExchange): Promise<unknown> {
  const { request, reply } = exchange;
  const path = pathOf(request);
  checkUnconditional(request.headers);
  allowLongBody(request, reply);
  const { exact: is_exact } = request.query as Static<typeof UnpackQuery>;
  const options = { is_exact, onStep: stepTeller(reply) };
  return await threads.unpack(path, request.raw, disconnectSignal(reply), options);
}

/** Answers GET `/files/watch` with a WebSocket. */
async function answerWatch(
  { own, trees, clock }: AccountFiles,
  { request, reply }: HttpExchange,
): Promise<void> {
  checkHandshake(request);
  const { WebSocketServer } = await import('ws');
  const upgrade = takeUpgrade(request, reply);
  if (!upgrade) return;
  const server = new WebSocketServer({ noServer: true, clientTracking: false, maxPayload: FRAME_MAX_BYTES });
  server.handleUpgrade(request.raw, upgrade.socket, upgrade.head, (socket) => {
    new WatchConnection({ clock, files: own, trees }, socket);
  });
}

/** Answers DELETE `/files`. */
async function answerRemove({ own }: AccountFiles, { request, reply }: HttpExchange): Promise<unknown> {
  checkUnconditional(request.headers);
  const { recursive } = request.query as Static<typeof FileRemoveQuery>;
  await own.remove({ path: pathOf(request), recursive, signal: stepSignal(reply) });
  return { deleted: true };
}

/** Answers POST `/files/move`. */
async function answerMove({ own }: AccountFiles, { request, reply }: HttpExchange): Promise<unknown> {
  await own.move(twoPaths(request, reply));
  return { moved: true };
}

/** Answers POST `/files/copy`. */
async function answerCopy({ own }: AccountFiles, exchange: HttpExchange): Promise<unknown> {
  const { request, reply } = exchange;
  const paths = twoPaths(request, reply);
  await own.copy(paths);
  return { copied: true };
}

function twoPaths({ body, headers }: FastifyRequest, reply: FastifyReply): TwoPaths {
  checkUnconditional(headers);
  if (!body) throw invalidField('body', 'is required');
  const { source, source_base64, destination, destination_base64, overwrite } = body as Static<
    typeof TwoPathsBody
  >;
  return {
    source: parsePath({ path: source, path_base64: source_base64 }, 'source'),
    destination: parsePath({ path: destination, path_base64: destination_base64 }, 'destination'),
    overwrite: overwrite ?? false,
    signal: stepSignal(reply),
  };
}

/** The path that a query names. The framework takes a text that is not UTF-8 as it is written. */
function pathOf({ raw, query }: FastifyRequest): BytePath {
  checkQueryText(raw.url ?? '');
  return parsePath(query as { path?: string; path_base64?: string });
}

/**
 * A signal that aborts when the client disconnects. Work through a large tree looks at it between its steps, of which the
 * daemon is then told: only work that does not go on is given up.
 */
function stepSignal(reply: FastifyReply): AbortSignal {
  const signal = disconnectSignal(reply);
  const tell = stepTeller(reply);
  const throwIfAborted = () => {
    if (signal.aborted) throw signal.reason;
    tell();
  };
  return Object.assign(signal, { throwIfAborted });
}

/** Makes what tells the daemon, now and then, that the work goes on. */
function stepTeller(reply: FastifyReply): () => void {
  let told_ms = systemClock.monotonicMs();
  return () => {
    const now_ms = systemClock.monotonicMs();
    if (now_ms - told_ms < STEPS_TOLD_MS) return;
    told_ms = now_ms;
    tellStep(reply);
  };
}

/** Tells the daemon that work goes on; without effect once there is an answer. */
function tellStep({ raw }: FastifyReply): void {
  if (!raw.headersSent) raw.writeProcessing();
}

const ANSWERS: Record<FileRoute['answer'], Answering> = {
  read: answerRead,
  stat: answerStat,
  list: answerList,
  pack: answerPack,
  watch: answerWatch,
  remove: answerRemove,
  move: answerMove,
  copy: answerCopy,
  write: answerWrite,
  unpack: answerUnpack,
};
