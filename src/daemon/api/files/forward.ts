import {
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
} from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { type Clock, runTime } from '../../../base/clock.ts';
import { keepHeapSmall } from '../../../base/engine/heap.ts';
import { handleOf, holdReading } from '../../../base/engine/node-http.ts';
import type { HttpExchange } from '../../../base/http/app.ts';
import { HOP_BY_HOP } from '../../../base/http/hop-by-hop.ts';
import { limitIdle } from '../../../base/http/idle-limit.ts';
import { allowLongBody, isUpgrade, takeUpgrade } from '../../../base/http/listener.ts';
import { joinUpgrade } from '../../../base/http/relay.ts';
import { sendHead } from '../../../base/http/send-head.ts';
import { FILE_CALL_TIMEOUT_MS, FILE_SYNC_TIMEOUT_MS } from '../../../contract/defaults.ts';
import { ApiError } from '../../../contract/errors.ts';
import { shownBytes } from '../../../files/byte-path.ts';
import type { AccountUse } from './account-process.ts';
import type { AccountProcesses } from './account-processes.ts';
import {
  DIRECT_HEADER,
  DIRECT_LENGTH_HEADER,
  DIRECT_REST_HEADER,
  type DirectOrder,
} from './direct-bodies.ts';
import type { FileRoute } from './file-routes.ts';

const BODIES = new Set(['POST', 'PUT']);
/** Of this connection, not of the next one. */
const OWN = new Set([
  'authorization',
  'host',
  'origin',
  'content-length',
  'expect',
  DIRECT_HEADER,
  DIRECT_REST_HEADER,
]);
/** Less of an upload is read here: to pass a connection takes a moment, and closes it in the end. */
const DIRECT_BYTES_MIN = 1024 * 1024;

let passed = 0;

/**
 * Has a request answered by a process of an account, streaming both ways; when either side closes, the other is closed.
 * Throws `permission_denied` if the daemon may not act as the account, and `unavailable` if a file system does not answer
 * in time.
 */
export async function forwardToAccount(
  to: AccountProcesses,
  route: FileRoute,
  exchange: HttpExchange,
  { clock, idle_timeout_ms }: { clock: Clock; idle_timeout_ms: number },
): Promise<void> {
  const { request, reply } = exchange;
  const use = await to.use();
  const order = { direct: String(++passed), is_read: route.answer === 'write', idle_timeout_ms };
  const upload = route.answer === 'write' && route.kind === 'transfer' ? directUpload(request) : null;
  const outgoing = httpRequest({
    socketPath: use.socket_path,
    agent: use.agent,
    method: request.method,
    path: request.raw.url,
    headers: {
      ...headersOf(request),
      ...(route.answer === 'read' ? { [DIRECT_HEADER]: order.direct } : {}),
      ...(upload ? headersOfUpload(upload, order) : {}),
    },
  });
  outgoing.once('close', use.done);
  const abandon = () => outgoing.destroy();
  request.raw.socket.once('close', abandon);
  reply.raw.once('close', () => request.raw.socket.off('close', abandon));
  if (request.raw.socket.destroyed) abandon();
  if (route.kind === 'transfer') beginTransfer(route, exchange, upload ? 0 : idle_timeout_ms, clock);
  if (upload) outgoing.once('information', () => passConnection(request.raw.socket, use, order));
  try {
    const answered = answerTo(outgoing, { use, route, request, upload, clock: runTime(clock) });
    const { head, upgraded } = await answered.finally(() => upload?.release());
    if (upgraded) {
      use.lasts();
      join(exchange, head, upgraded);
    } else if (head.headers[DIRECT_LENGTH_HEADER] !== undefined) {
      relayDirect(exchange, head, use, order);
    } else relay(exchange, head);
  } catch (error) {
    outgoing.destroy();
    throw error;
  }
}

/** An upload whose larger part the process reads from the client's connection by itself. */
interface DirectUpload {
  /** What was read here. */
  first: Buffer;
  /** Bytes that follow. */
  rest: number;
  /** Has this process read the connection again. Idempotent. */
  release: () => void;
}

/** Begins a direct upload; null for one that is short, or of unknown length. */
function directUpload({ raw }: FastifyRequest): DirectUpload | null {
  const length = Number(raw.headers['content-length'] ?? 0);
  const release = length < DIRECT_BYTES_MIN || raw.destroyed ? null : holdReading(raw.socket);
  if (!release) return null;
  const pieces: Buffer[] = [];
  for (let piece = raw.read(); piece !== null; piece = raw.read()) pieces.push(piece);
  const first = Buffer.concat(pieces);
  if (first.length < length) return { first, rest: length - first.length, release };
  release();
  return { first, rest: 0, release: () => {} };
}

function headersOfUpload({ first, rest }: DirectUpload, { direct }: DirectOrder): Record<string, string> {
  const headers = { 'content-length': String(first.length) };
  return rest === 0 ? headers : { ...headers, [DIRECT_HEADER]: direct, [DIRECT_REST_HEADER]: String(rest) };
}

function passConnection(socket: Socket, use: AccountUse, order: DirectOrder): void {
  const handle = handleOf(socket);
  if (handle && !socket.destroyed) use.pass(order, handle);
  else socket.destroy();
}

/** Cuts an idle client. One that is copied for, or has sent everything, waits for the disk. */
function beginTransfer(
  { answer, changes_files }: FileRoute,
  { request, reply }: HttpExchange,
  idle_timeout_ms: number,
  clock: Clock,
): void {
  keepHeapSmall();
  if (answer === 'copy') return;
  const { socket } = request.raw;
  if (idle_timeout_ms > 0) limitIdle(reply.raw, socket, idle_timeout_ms, clock);
  if (!changes_files) return;
  allowLongBody(request, reply);
  request.raw.once('end', () => socket.setTimeout(0));
}

function headersOf(request: FastifyRequest): Record<string, string> {
  const kept = Object.entries(request.headers).flatMap(([name, value]): [string, string][] =>
    typeof value !== 'string' || HOP_BY_HOP.has(name) || OWN.has(name) ? [] : [[name, value]],
  );
  const headers = { ...Object.fromEntries(kept), host: 'localhost' };
  if (isUpgrade(request)) return { ...headers, connection: 'Upgrade', upgrade: 'websocket' };
  return BODIES.has(request.method) ? { ...headers, ...framing(request) } : headers;
}

/** The framing of the body as this side parsed it. */
function framing({ headers, body }: FastifyRequest): Record<string, string> {
  if (body !== undefined && body !== null) return { 'content-length': String(textOf(body).length) };
  if (headers['transfer-encoding'] !== undefined) return { 'transfer-encoding': 'chunked' };
  return { 'content-length': headers['content-length'] ?? '0' };
}

/** A body that was parsed, as it is passed on. */
function textOf(body: unknown): Buffer {
  return Buffer.from(JSON.stringify(body));
}

/** A request under way. */
interface Forwarded {
  use: AccountUse;
  route: FileRoute;
  request: FastifyRequest;
  upload: DirectUpload | null;
  clock: Clock;
}

interface Answer {
  head: IncomingMessage;
  upgraded: Socket | null;
}

function answerTo(outgoing: ClientRequest, forwarded: Forwarded): Promise<Answer> {
  const { request, upload } = forwarded;
  const { lost } = forwarded.use;
  const { method, raw, body } = request;
  return new Promise((resolve, reject) => {
    const refuse = (error: unknown) => {
      finish();
      reject(error);
    };
    const onLost = () => refuse(lost.reason);
    const stopWatching = watch(outgoing, forwarded, () => refuse(hangs(request)));
    const finish = () => {
      stopWatching();
      lost.removeEventListener('abort', onLost);
    };
    lost.addEventListener('abort', onLost);
    outgoing.once('response', (head) => {
      finish();
      resolve({ head, upgraded: null });
    });
    outgoing.once('upgrade', (head, upgraded, first) => {
      finish();
      upgraded.on('error', () => {});
      if (first.length > 0) upgraded.unshift(first);
      resolve({ head, upgraded: upgraded as Socket });
    });
    outgoing.on('error', () => {
      // If the process has been killed, that is about to be reported.
      setImmediate(() => refuse(new ApiError('unavailable', 'The process for file operations has ended.')));
    });
    if (lost.aborted) onLost();
    else if (upload) outgoing.end(upload.first);
    else if (body !== undefined && body !== null) outgoing.end(textOf(body));
    else if (BODIES.has(method)) raw.pipe(outgoing);
    else outgoing.end();
  });
}

/** Calls `onHanging` if a request makes no progress for as long as its kind allows; returns what ends that. */
function watch(outgoing: ClientRequest, forwarded: Forwarded, onHanging: () => void): () => void {
  const { upload, clock } = forwarded;
  const { kind, changes_files, answer } = forwarded.route;
  const { method, raw, body } = forwarded.request;
  const is_relayed = BODIES.has(method) && (body === undefined || body === null) && kind === 'transfer';
  const has_stream = is_relayed && !upload;
  const syncs = answer === 'move' || (kind === 'transfer' && changes_files);
  let steps = 0;
  let seen = 0;
  const check = () => {
    const progress = steps + (has_stream ? (outgoing.socket?.bytesWritten ?? 0) : 0);
    const is_clients_turn = has_stream && !raw.complete && !outgoing.writableNeedDrain;
    if (progress === seen && !is_clients_turn) return onHanging();
    seen = progress;
    timer = arm();
  };
  // A disk that writes takes longer than one that does not answer: the process reports that it has begun.
  const arm = () => clock.after(syncs && steps > 0 ? FILE_SYNC_TIMEOUT_MS : FILE_CALL_TIMEOUT_MS, check);
  let timer = arm();
  // So are steps through a large tree.
  outgoing.on('information', () => {
    steps += 1;
  });
  return () => timer.cancel();
}

function hangs({ query, body }: FastifyRequest): ApiError {
  const { path, path_base64 } = query as { path?: string; path_base64?: string };
  const { source, destination } = (body ?? {}) as { source?: string; destination?: string };
  const named =
    path_base64 === undefined ? path : shownBytes(Buffer.from(path_base64, 'base64').toString('latin1')).text;
  return new ApiError('unavailable', 'The file system does not answer.', {
    path: named ?? source ?? null,
    ...(destination === undefined ? {} : { destination }),
    retry_after_s: 10,
  });
}

/** Sends the head of an answer; from then on it is the caller's. Throws `unavailable` if it cannot be written. */
function relayHead({ request, reply }: HttpExchange, head: IncomingMessage, own: OutgoingHttpHeaders): void {
  const kept = Object.entries(head.headers).filter(([name]) => !HOP_BY_HOP.has(name) && !(name in own));
  const headers = { ...Object.fromEntries(kept), ...own, 'x-request-id': request.id };
  try {
    sendHead(reply.raw, head.statusCode as number, Object.entries(headers) as [string, string | string[]][]);
  } catch {
    // The account's own processes can have it answer what they like.
    throw new ApiError('unavailable', 'The answer of the process for file operations cannot be passed on.');
  }
  reply.hijack();
}

function relay(exchange: HttpExchange, head: IncomingMessage): void {
  const { request } = exchange;
  const { raw } = exchange.reply;
  // The body of a refused request may still be under way.
  relayHead(exchange, head, request.raw.complete ? {} : { connection: 'close' });
  head.pipe(raw);
  head.once('error', () => raw.destroy());
  head.once('close', () => {
    if (!head.complete) raw.destroy();
  });
  raw.once('close', () => head.destroy());
  // What the answer does not wait for is of no use to anybody.
  raw.once('finish', () => request.raw.resume());
}

/** Relays an answer whose body the process sends to the client's connection by itself. */
function relayDirect(
  exchange: HttpExchange,
  head: IncomingMessage,
  use: AccountUse,
  order: DirectOrder,
): void {
  const { raw } = exchange.reply;
  const { socket } = exchange.request.raw;
  const { [DIRECT_LENGTH_HEADER]: length } = head.headers;
  delete head.headers[DIRECT_LENGTH_HEADER];
  relayHead(exchange, head, { 'content-length': String(length) });
  // The process itself sees how its bytes move.
  socket.setTimeout(0);
  socket.write('', () => passConnection(socket, use, order));
  head.resume();
  head.once('error', () => raw.destroy());
  head.once('close', () => {
    if (head.complete) raw.end();
    else raw.destroy();
  });
  raw.once('close', () => head.destroy());
}

function join({ request, reply }: HttpExchange, head: IncomingMessage, upgraded: Socket): void {
  const own = takeUpgrade(request, reply);
  if (!own) {
    upgraded.destroy();
    return;
  }
  const lines = Object.entries(head.headers).map(([name, value]) => `${name}: ${value}\r\n`);
  own.socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`, 'latin1');
  joinUpgrade(own, upgraded);
}
