import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { type Clock, runTime } from '../../../base/clock.ts';
import { keepHeapSmall } from '../../../base/engine/heap.ts';
import { handleOf } from '../../../base/engine/node-http.ts';
import type { HttpExchange } from '../../../base/http/app.ts';
import { HOP_BY_HOP } from '../../../base/http/hop-by-hop.ts';
import { limitIdle } from '../../../base/http/idle-limit.ts';
import { allowLongBody, isUpgrade, takeUpgrade } from '../../../base/http/listener.ts';
import { joinUpgrade } from '../../../base/http/relay.ts';
import { FILE_CALL_TIMEOUT_MS, FILE_SYNC_TIMEOUT_MS } from '../../../contract/defaults.ts';
import { ApiError } from '../../../contract/errors.ts';
import { shownBytes } from '../../../files/byte-path.ts';
import type { AccountUse } from './account-process.ts';
import type { AccountProcesses } from './account-processes.ts';
import { DIRECT_HEADER, DIRECT_LENGTH_HEADER, type DirectOrder } from './direct-bodies.ts';
import type { FileRoute } from './file-routes.ts';

const BODIES = new Set(['POST', 'PUT']);
/** Of this connection, not of the next one. */
const OWN = new Set(['authorization', 'host', 'origin', 'content-length', 'expect', DIRECT_HEADER]);

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
  const direct = route.answer === 'read' ? String(++passed) : null;
  const outgoing = httpRequest({
    socketPath: use.socket_path,
    agent: false,
    method: request.method,
    path: request.raw.url,
    headers: direct === null ? headersOf(request) : { ...headersOf(request), [DIRECT_HEADER]: direct },
  });
  outgoing.once('close', use.done);
  const abandon = () => outgoing.destroy();
  request.raw.socket.once('close', abandon);
  reply.raw.once('close', () => request.raw.socket.off('close', abandon));
  if (request.raw.socket.destroyed) abandon();
  if (route.kind === 'transfer') beginTransfer(route, exchange, idle_timeout_ms, clock);
  try {
    const { head, upgraded } = await answerTo(outgoing, use, route, request, runTime(clock));
    if (upgraded) {
      use.lasts();
      join(exchange, head, upgraded);
    } else if (direct !== null && head.headers[DIRECT_LENGTH_HEADER] !== undefined) {
      relayHead(exchange, head, use, { direct, idle_timeout_ms });
    } else relay(exchange, head);
  } catch (error) {
    outgoing.destroy();
    throw error;
  }
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
  limitIdle(reply.raw, socket, idle_timeout_ms, clock);
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

interface Answer {
  head: IncomingMessage;
  upgraded: Socket | null;
}

function answerTo(
  outgoing: ClientRequest,
  { lost }: AccountUse,
  route: FileRoute,
  request: FastifyRequest,
  clock: Clock,
): Promise<Answer> {
  const { method, raw, body } = request;
  return new Promise((resolve, reject) => {
    const refuse = (error: unknown) => {
      finish();
      reject(error);
    };
    const onLost = () => refuse(lost.reason);
    const stopWatching = watch(outgoing, route, request, clock, () => refuse(hangs(request)));
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
    else if (body !== undefined && body !== null) outgoing.end(textOf(body));
    else if (BODIES.has(method)) raw.pipe(outgoing);
    else outgoing.end();
  });
}

/** Calls `onHanging` if a request makes no progress for as long as its kind allows; returns what ends that. */
function watch(
  outgoing: ClientRequest,
  { kind, changes_files, answer }: FileRoute,
  { method, raw, body }: FastifyRequest,
  clock: Clock,
  onHanging: () => void,
): () => void {
  const has_stream = BODIES.has(method) && (body === undefined || body === null) && kind === 'transfer';
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
  const arm = () => {
    const has_all = !has_stream || raw.complete;
    return clock.after(syncs && has_all ? FILE_SYNC_TIMEOUT_MS : FILE_CALL_TIMEOUT_MS, check);
  };
  let timer = arm();
  // The process reports its steps through a large tree.
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

function relay({ request, reply }: HttpExchange, head: IncomingMessage): void {
  const headers = Object.entries(head.headers).filter(([name]) => !HOP_BY_HOP.has(name));
  reply.hijack();
  const { raw } = reply;
  // The body of a refused request may still be under way.
  if (!request.raw.complete) headers.push(['connection', 'close']);
  raw.writeHead(head.statusCode as number, { ...Object.fromEntries(headers), 'x-request-id': request.id });
  raw.flushHeaders();
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
function relayHead(
  { request, reply }: HttpExchange,
  head: IncomingMessage,
  use: AccountUse,
  order: DirectOrder,
): void {
  const { raw } = reply;
  const { socket } = request.raw;
  const { [DIRECT_LENGTH_HEADER]: length, ...headers } = head.headers;
  const kept = Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name));
  reply.hijack();
  raw.writeHead(head.statusCode as number, {
    ...Object.fromEntries(kept),
    'content-length': String(length),
    'x-request-id': request.id,
  });
  raw.flushHeaders();
  // The process itself sees how its bytes move.
  socket.setTimeout(0);
  socket.write('', () => {
    const handle = handleOf(socket);
    if (handle && !socket.destroyed) use.pass(order, handle);
    else raw.destroy();
  });
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
  own.socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`);
  joinUpgrade(own, upgraded);
}
