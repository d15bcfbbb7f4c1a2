import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import { keepHeapSmall } from '../../../base/engine/heap.ts';
import { type HttpExchange, success } from '../../../base/http/app.ts';
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
} from '../../../contract/schema/files.ts';
import { type BytePath, parsePath, pathFields } from '../../../files/byte-path.ts';
import type { TwoPaths } from '../../../files/change/two-places.ts';
import { checkUnconditional, writeConditions } from '../../../files/conditions.ts';
import { withPath } from '../../../files/file-error.ts';
import { freeBuffer } from '../../../files/free-buffer.ts';
import { checkHandshake } from '../process-attach.ts';
import { BodyWriter } from './body-writer.ts';
import { answerDownload } from './download.ts';
import type { RoutedFiles } from './file-service.ts';
import { WatchConnection } from './watch/watch-connection.ts';

type WriteQuery = Static<typeof FileWriteQuery>;

/** The longest frame of a client that watches: a path and little else. */
const FRAME_MAX_BYTES = 64 * 1024;
/** What `success` puts around data, here around what is JSON already. */
const [SUCCESS, SUCCESS_END] = [Buffer.from('{"success":true,"data":'), Buffer.from('}')];

/** Answers GET and HEAD `/files`. */
export async function answerRead(files: RoutedFiles, exchange: HttpExchange): Promise<void> {
  const path = pathOf(exchange.request);
  files.transfers.begin(exchange);
  const file = await files.own.open(path);
  await withPath(path, () => answerDownload(file, files.clock, exchange));
}

/** Answers GET `/files/stat`. */
export async function answerStat({ own }: RoutedFiles, { request }: HttpExchange): Promise<unknown> {
  return success(await own.stat(pathOf(request)));
}

/** Answers GET `/files/list`. */
export async function answerList(
  { threads }: RoutedFiles,
  { request, reply }: HttpExchange,
): Promise<unknown> {
  const { depth, limit, cursor } = request.query as Static<typeof FileListQuery>;
  const page = await threads.list({ path: pathOf(request), depth, limit, cursor });
  reply.type('application/json; charset=utf-8');
  const body = Buffer.concat([SUCCESS, page, SUCCESS_END]);
  freeBuffer(page);
  return body;
}

/** Answers POST and PUT `/files`: an upload, or a directory to make. */
export async function answerWrite(files: RoutedFiles, exchange: HttpExchange): Promise<unknown> {
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
  { own, transfers }: RoutedFiles,
  path: BytePath,
  query: WriteQuery,
  exchange: HttpExchange,
): Promise<unknown> {
  const { request, reply } = exchange;
  const conditions = writeConditions(request.headers);
  transfers.begin(exchange);
  allowLongBody(request, reply);
  keepHeapSmall();
  const { is_new, size, etag } = await own.write({
    path,
    mode: modeOf(query),
    parents: query.parents,
    conditions,
    data: request.raw,
    signal: disconnectSignal(reply),
    onReceived: () => transfers.received(exchange),
  });
  reply.code(is_new ? 201 : 200).header('etag', etag);
  return success({ written: true, ...pathFields(path), size, etag });
}

async function makeDirectory(
  { own }: RoutedFiles,
  path: BytePath,
  query: WriteQuery,
  { request, reply }: HttpExchange,
): Promise<unknown> {
  request.raw.resume();
  const created = await own.makeDirectory({ path, recursive: query.recursive, mode: modeOf(query) });
  reply.code(created ? 201 : 200);
  return success({ created });
}

function modeOf({ mode }: WriteQuery): number | null {
  return mode === undefined ? null : Number.parseInt(mode, 8);
}

/** Answers GET `/files/archive`. */
export async function answerPack(files: RoutedFiles, exchange: HttpExchange): Promise<void> {
  const path = pathOf(exchange.request);
  const { format } = exchange.request.query as Static<typeof ArchiveQuery>;
  files.transfers.begin(exchange);
  const gone = disconnectSignal(exchange.reply);
  const archive = await files.threads.pack(path, gone);
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
export async function answerUnpack(
  { threads, transfers }: RoutedFiles,
  exchange: HttpExchange,
): Promise<unknown> {
  const { request, reply } = exchange;
  const path = pathOf(request);
  checkUnconditional(request.headers);
  transfers.begin(exchange);
  allowLongBody(request, reply);
  return success(await threads.unpack(path, request.raw, disconnectSignal(reply)));
}

/** Answers GET `/files/watch` with a WebSocket. */
export async function answerWatch(
  { own, trees, clock }: RoutedFiles,
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
export async function answerRemove({ own }: RoutedFiles, { request, reply }: HttpExchange): Promise<unknown> {
  checkUnconditional(request.headers);
  const { recursive } = request.query as Static<typeof FileRemoveQuery>;
  await own.remove({ path: pathOf(request), recursive, signal: disconnectSignal(reply) });
  return success({ deleted: true });
}

/** Answers POST `/files/move`. */
export async function answerMove({ own }: RoutedFiles, { request, reply }: HttpExchange): Promise<unknown> {
  await own.move(twoPaths(request, reply));
  return success({ moved: true });
}

/** Answers POST `/files/copy`. */
export async function answerCopy({ own, transfers }: RoutedFiles, exchange: HttpExchange): Promise<unknown> {
  const { request, reply } = exchange;
  const paths = twoPaths(request, reply);
  transfers.count(exchange);
  await own.copy(paths);
  return success({ copied: true });
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
    signal: disconnectSignal(reply),
  };
}

/** The path that a query names. The framework takes a text that is not UTF-8 as it is written. */
function pathOf({ raw, query }: FastifyRequest): BytePath {
  checkQueryText(raw.url ?? '');
  return parsePath(query as { path?: string; path_base64?: string });
}
