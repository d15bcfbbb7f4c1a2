import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';
import type { HttpExchange } from '../../../base/http/app.ts';
import { HOP_BY_HOP } from '../../../base/http/hop-by-hop.ts';
import { isUpgrade, takeUpgrade } from '../../../base/http/listener.ts';
import { joinUpgrade } from '../../../base/http/relay.ts';
import { ApiError } from '../../../contract/errors.ts';
import type { AccountProcess } from './account-process.ts';

const BODIES = new Set(['POST', 'PUT']);
/** Of this connection, not of the next one. */
const OWN = new Set(['authorization', 'host', 'origin', 'content-length', 'expect']);

/**
 * Has a request answered by the process of an account, streaming both ways; when either side closes, the other is closed.
 * Throws `permission_denied` where the daemon may not act as the account.
 */
export async function forwardToAccount(to: AccountProcess, exchange: HttpExchange): Promise<void> {
  const { request, reply } = exchange;
  const { socket, done } = await to.use();
  const outgoing = httpRequest({
    socketPath: socket,
    agent: false,
    method: request.method,
    path: request.raw.url,
    headers: headersOf(request),
  });
  outgoing.once('close', done);
  const abandon = () => outgoing.destroy();
  request.raw.socket.once('close', abandon);
  reply.raw.once('close', () => request.raw.socket.off('close', abandon));
  try {
    const { head, upgraded } = await answerTo(outgoing, request);
    if (upgraded) join(exchange, head, upgraded);
    else relay(exchange, head);
  } catch (error) {
    outgoing.destroy();
    throw error;
  }
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

function answerTo(outgoing: ClientRequest, { method, raw, body }: FastifyRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    outgoing.once('response', (head) => resolve({ head, upgraded: null }));
    outgoing.once('upgrade', (head, upgraded, first) => {
      upgraded.on('error', () => {});
      if (first.length > 0) upgraded.unshift(first);
      resolve({ head, upgraded: upgraded as Socket });
    });
    outgoing.on('error', () => reject(new ApiError('internal_error', "The account's process has ended.")));
    if (body !== undefined && body !== null) outgoing.end(textOf(body));
    else if (BODIES.has(method)) raw.pipe(outgoing);
    else outgoing.end();
  });
}

function relay({ request, reply }: HttpExchange, head: IncomingMessage): void {
  const headers = Object.entries(head.headers).filter(([name]) => !HOP_BY_HOP.has(name));
  reply.hijack();
  const { raw } = reply;
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
