import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import { success } from '../../../base/http/app.ts';
import { allowLongBody, takeUpgrade } from '../../../base/http/listener.ts';
import { checkQueryText } from '../../../base/http/query.ts';
import { disconnectSignal } from '../../../base/http/sse-response.ts';
import { invalidField } from '../../../contract/errors.ts';
import type {
  ArchiveQuery,
  FileListQuery,
  FileRemoveQuery,
  TwoPathsBody,
} from '../../../contract/schema/files.ts';
import { type BytePath, parsePath } from '../../../files/byte-path.ts';
import type { TwoPaths } from '../../../files/change/two-places.ts';
import { checkUnconditional } from '../../../files/conditions.ts';
import { told } from '../../../files/file-error.ts';
import { freeBuffer } from '../../../files/free-buffer.ts';
import { checkHandshake } from '../process-attach.ts';
import type { Exchange } from '../process-output.ts';
import { sendArchive } from './archive-body.ts';
import { answerDownload } from './download.ts';
import type { RoutedFiles } from './routed-files.ts';
import { answerMakeDirectory, answerUpload, type WriteQuery } from './upload.ts';
import { WatchConnection } from './watch/watch-connection.ts';

/** The longest frame of a client that watches: a path and little else. */
const FRAME_MAX_BYTES = 64 * 1024;
/** What `success` puts around data, here around what is JSON already. */
const [SUCCESS, SUCCESS_END] = [Buffer.from('{"success":true,"data":'), Buffer.from('}')];

/** Answers GET and HEAD `/files`. */
export async function answerRead(files: RoutedFiles, exchange: Exchange): Promise<void> {
  const path = pathOf(exchange.request);
  files.transfers.begin(exchange);
  const file = await files.own.open(path);
  await told(path, () => answerDownload(file, files.clock, exchange));
}

/** Answers GET `/files/stat`. */
export async function answerStat({ own }: RoutedFiles, { request }: Exchange): Promise<unknown> {
  return success(await own.stat(pathOf(request)));
}

/** Answers GET `/files/list`. */
export async function answerList({ threads }: RoutedFiles, { request, reply }: Exchange): Promise<unknown> {
  const { depth, limit, cursor } = request.query as Static<typeof FileListQuery>;
  const page = await threads.list({ path: pathOf(request), depth, limit, cursor });
  reply.type('application/json; charset=utf-8');
  const body = Buffer.concat([SUCCESS, page, SUCCESS_END]);
  freeBuffer(page);
  return body;
}

/** Answers POST and PUT `/files`: an upload, or a directory to make. */
export async function answerWrite(files: RoutedFiles, exchange: Exchange): Promise<unknown> {
  const { request } = exchange;
  const query = request.query as WriteQuery;
  const path = pathOf(request);
  if (!query.mkdir) return answerUpload(files, path, query, exchange);
  checkUnconditional(request.headers);
  if (request.method === 'PUT') throw invalidField('mkdir', 'is accepted with POST only');
  return answerMakeDirectory(files, path, query, exchange);
}

/** Answers GET `/files/archive`. */
export async function answerPack(files: RoutedFiles, exchange: Exchange): Promise<void> {
  const path = pathOf(exchange.request);
  const { format } = exchange.request.query as Static<typeof ArchiveQuery>;
  files.transfers.begin(exchange);
  const gone = disconnectSignal(exchange.reply);
  const archive = await files.threads.pack(path, gone);
  await told(path, () => sendArchive(archive, format, gone, exchange));
}

/** Answers PUT `/files/archive`. */
export async function answerUnpack(
  { threads, transfers }: RoutedFiles,
  exchange: Exchange,
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
  { request, reply }: Exchange,
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
export async function answerRemove({ own }: RoutedFiles, { request, reply }: Exchange): Promise<unknown> {
  checkUnconditional(request.headers);
  const { recursive } = request.query as Static<typeof FileRemoveQuery>;
  await own.remove({ path: pathOf(request), recursive, signal: disconnectSignal(reply) });
  return success({ deleted: true });
}

/** Answers POST `/files/move`. */
export async function answerMove({ own }: RoutedFiles, { request, reply }: Exchange): Promise<unknown> {
  await own.move(twoPaths(request, reply));
  return success({ moved: true });
}

/** Answers POST `/files/copy`. */
export async function answerCopy({ own, transfers }: RoutedFiles, exchange: Exchange): Promise<unknown> {
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
