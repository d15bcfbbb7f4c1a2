import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { joinUpgrade } from '../../base/http/join-upgrade.ts';
import { allowLongBody, isUpgrade, takeUpgrade } from '../../base/http/listener.ts';
import { CONTROL_SCOPE_HEADER, type ControlScope } from '../../contract/control-scopes.ts';
import { ApiError, invalidField } from '../../contract/errors.ts';
import { boundInterimAnswers } from '../../runtime/control-client.ts';
import { answerHeaders, isFinal, upgradeHead } from './daemon-answer.ts';

/** The request headers that are forwarded; the framing of the body is set here. */
const FORWARDED = [
  'accept',
  'content-type',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'last-event-id',
  'range',
  'traceparent',
];
const FORWARDED_UPGRADE = ['sec-websocket-key', 'sec-websocket-version'];

/** Where a request goes. `path` is built by the manager, never taken from the caller. */
export interface Target {
  socket: string;
  path: string;
  scope: ControlScope;
}

/**
 * Passes a request to a sandbox's daemon over a connection of its own, and streams the answer back. A body that was parsed
 * is sent whole, any other is streamed; when either side closes, the other is closed. Message framing is never taken from
 * the other side's headers. Throws `invalid_request` for a body with a method that has none, and `unavailable` if the
 * daemon does not answer with HTTP.
 */
export async function passThrough(
  request: FastifyRequest,
  reply: FastifyReply,
  { socket, path, scope }: Target,
): Promise<void> {
  const is_upgrade = isUpgrade(request);
  const has_body = takesBody(request);
  if (is_upgrade && request.method !== 'GET') throw invalidField('Upgrade', 'is allowed with GET only');
  const outgoing = httpRequest({
    socketPath: socket,
    // A reused connection may still hold the rest of an earlier answer.
    agent: false,
    method: request.method,
    path,
    headers: { ...forwarded(request), ...(has_body ? framing(request) : {}), [CONTROL_SCOPE_HEADER]: scope },
  });
  if (has_body) allowLongBody(request, reply);
  // The rest is useless once the caller has gone.
  const abandon = () => outgoing.destroy();
  request.raw.socket.once('close', abandon);
  try {
    const answer = await answerTo(request, outgoing, has_body);
    if (is_upgrade && answer.upgraded) return join(request, reply, answer, answer.upgraded);
    if (answer.upgraded || !isFinal(answer.head)) throw noAnswer();
    if (!request.raw.complete) dropBody(request, reply, outgoing);
    relay(reply, answer.head);
  } catch (error) {
    outgoing.destroy();
    throw error;
  } finally {
    reply.raw.once('close', () => request.raw.socket.off('close', abandon));
  }
}

/** Only these methods have a body: after the head of any other, its bytes would be read as another request. */
function takesBody({ method, headers }: FastifyRequest): boolean {
  if (method === 'POST' || method === 'PUT') return true;
  const { 'transfer-encoding': encoding, 'content-length': length } = headers;
  if (encoding === undefined && (length === undefined || Number(length) === 0)) return false;
  throw invalidField('body', `is not allowed with ${method}`);
}

/** The framing of the body as this side parsed it; always explicit. */
function framing({ headers, body }: FastifyRequest): Record<string, string> {
  if (Buffer.isBuffer(body)) return { 'content-length': String(body.length) };
  const { 'transfer-encoding': encoding, 'content-length': length = '0' } = headers;
  return encoding === undefined ? { 'content-length': length } : { 'transfer-encoding': 'chunked' };
}

function forwarded(request: FastifyRequest): Record<string, string> {
  const names = isUpgrade(request) ? [...FORWARDED, ...FORWARDED_UPGRADE] : FORWARDED;
  const kept = names.flatMap((name): [string, string][] => {
    const value = request.headers[name];
    return typeof value === 'string' ? [[name, value]] : [];
  });
  return {
    ...Object.fromEntries(kept),
    host: 'localhost',
    ...(isUpgrade(request) ? { connection: 'Upgrade', upgrade: 'websocket' } : {}),
  };
}

interface Answer {
  head: IncomingMessage;
  upgraded: Socket | null;
  first: Buffer;
}

function answerTo(request: FastifyRequest, outgoing: ClientRequest, has_body: boolean): Promise<Answer> {
  return new Promise((resolve, reject) => {
    boundInterimAnswers(outgoing);
    outgoing.once('response', (head) => resolve({ head, upgraded: null, first: Buffer.alloc(0) }));
    outgoing.once('upgrade', (head, upgraded, first) => {
      upgraded.on('error', () => {});
      resolve({ head, upgraded: upgraded as Socket, first });
    });
    outgoing.on('error', () => reject(noAnswer()));
    if (!has_body) outgoing.end();
    else if (Buffer.isBuffer(request.body)) outgoing.end(request.body);
    else request.raw.pipe(outgoing);
  });
}

function noAnswer(): ApiError {
  return new ApiError('unavailable', "The sandbox's daemon does not answer.", { retry_after_s: 1 });
}

/** The daemon has answered without the rest of the body: the connection ends once the caller has the answer. */
function dropBody({ raw }: FastifyRequest, reply: FastifyReply, outgoing: ClientRequest): void {
  reply.header('connection', 'close');
  raw.unpipe(outgoing);
  raw.resume();
}

/** Streams the daemon's answer to the caller. */
function relay(reply: FastifyReply, head: IncomingMessage): void {
  const own = reply.getHeaders();
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(head.statusCode as number, { ...answerHeaders(head), ...(own as Record<string, string>) });
  raw.flushHeaders();
  head.pipe(raw);
  head.once('error', () => raw.destroy());
  raw.once('close', () => head.destroy());
}

/** Connects two upgraded sockets. */
function join(request: FastifyRequest, reply: FastifyReply, { head, first }: Answer, upgraded: Socket): void {
  const lines = upgradeHead(head);
  if (lines === null) {
    upgraded.destroy();
    throw noAnswer();
  }
  const own = takeUpgrade(request, reply);
  if (!own) {
    upgraded.destroy();
    return;
  }
  own.socket.write(lines);
  if (first.length > 0) own.socket.write(first);
  joinUpgrade(own, upgraded);
}
