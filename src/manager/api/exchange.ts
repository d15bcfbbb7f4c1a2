import {
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { closeFrame, FrameBoundary } from '../../base/http/frame-boundary.ts';
import { allowLongBody, isUpgrade, takeUpgrade } from '../../base/http/listener.ts';
import { joinUpgrade, relay as relayBytes } from '../../base/http/relay.ts';
import { sendHead } from '../../base/http/send-head.ts';
import { ApiError } from '../../contract/errors.ts';
import { boundInterimAnswers } from '../../runtime/control-client.ts';
import { isFinal } from './daemon-answer.ts';
import { revoked } from './rights.ts';

/** Closes a WebSocket whose caller may not use it any more. Source: RFC 6455, section 7.4.1. */
const POLICY_VIOLATION = 1008;
/** How long a client may take to read why its WebSocket is closed. */
const CLOSE_MS = 1_000;

/** The headers of a message. */
export type MessageHeaders = Record<string, string | string[]>;

/** A server that a request is passed to. Nothing of its answers can be trusted. */
export interface Upstream {
  /** A connection of this request's own: a reused one may still hold the rest of an earlier answer. */
  connection: Pick<RequestOptions, 'createConnection'>;
  /** The target; never split or decoded here. */
  path: string;
  /** Whether it may answer while it still takes the body; otherwise the rest of the body is dropped. */
  is_duplex: boolean;
  /** The headers of the request, without those that frame its body. */
  headers: MessageHeaders;
  /** The headers of an answer that reach the caller. */
  answerHeaders(head: IncomingMessage): MessageHeaders;
  /** The response head that opens a WebSocket; null if the answer does not open one. */
  upgradeHead(head: IncomingMessage): string | null;
  /** The error for an answer that is none. */
  noAnswer(): ApiError;
}

/**
 * Passes a request on over a connection of its own, and streams the answer back. A body that was parsed is sent whole, any
 * other is streamed; when either side closes, the other is closed. Message framing is never taken from the other side's
 * headers. Throws `noAnswer()` if there is no answer in HTTP.
 */
export async function exchange(
  request: FastifyRequest,
  reply: FastifyReply,
  upstream: Upstream,
): Promise<void> {
  const body = framing(request);
  const { connection, path, headers } = upstream;
  const outgoing = httpRequest({
    ...connection,
    method: request.method,
    path,
    headers: { ...headers, ...body },
  });
  if (body !== null) allowLongBody(request, reply);
  // The rest is useless once the caller has gone.
  const abandon = () => outgoing.destroy();
  request.raw.socket.once('close', abandon);
  request.right?.onLoss(() => {
    reply.header('www-authenticate', 'Bearer');
    outgoing.destroy(revoked());
  });
  try {
    const answer = await answerTo(request, outgoing, body !== null, upstream);
    if (isUpgrade(request) && answer.upgraded) return join(request, reply, answer, upstream);
    if (answer.upgraded || !isFinal(answer.head)) {
      // The request has let go of it.
      answer.upgraded?.destroy();
      throw upstream.noAnswer();
    }
    if (!request.raw.complete) dropBody(request, reply, { outgoing, head: answer.head, upstream });
    relay(reply, answer.head, upstream);
  } catch (error) {
    outgoing.destroy();
    throw error;
  } finally {
    reply.raw.once('close', () => request.raw.socket.off('close', abandon));
  }
}

/** The framing of the body as this side parsed it, always explicit; null: there is no body. */
function framing({ method, headers, body }: FastifyRequest): Record<string, string> | null {
  if (Buffer.isBuffer(body)) return { 'content-length': String(body.length) };
  const { 'transfer-encoding': encoding, 'content-length': length } = headers;
  if (encoding !== undefined) return { 'transfer-encoding': 'chunked' };
  if (length !== undefined && Number(length) > 0) return { 'content-length': length };
  return method === 'POST' || method === 'PUT' || method === 'PATCH' ? { 'content-length': '0' } : null;
}

interface Answer {
  head: IncomingMessage;
  upgraded: Socket | null;
  first: Buffer;
}

function answerTo(
  request: FastifyRequest,
  outgoing: ClientRequest,
  has_body: boolean,
  upstream: Upstream,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    boundInterimAnswers(outgoing);
    outgoing.once('response', (head) => resolve({ head, upgraded: null, first: Buffer.alloc(0) }));
    outgoing.once('upgrade', (head, upgraded, first) => {
      upgraded.on('error', () => {});
      resolve({ head, upgraded: upgraded as Socket, first });
    });
    outgoing.on('error', (error) => reject(error instanceof ApiError ? error : upstream.noAnswer()));
    if (!has_body) outgoing.end();
    else if (Buffer.isBuffer(request.body)) outgoing.end(request.body);
    else request.raw.pipe(outgoing);
  });
}

/**
 * The answer has come without the rest of the body, which is dropped now, or at the end of the answer of a server that may
 * still take it.
 */
function dropBody(
  { raw }: FastifyRequest,
  reply: FastifyReply,
  { outgoing, head, upstream }: { outgoing: ClientRequest; head: IncomingMessage; upstream: Upstream },
): void {
  const drop = () => {
    raw.unpipe(outgoing);
    raw.resume();
  };
  if (upstream.is_duplex) return void head.once('close', drop);
  // The connection ends once the caller has the answer.
  reply.header('connection', 'close');
  drop();
}

/** Streams the answer to the caller. */
function relay(reply: FastifyReply, head: IncomingMessage, { answerHeaders, noAnswer }: Upstream): void {
  const { request } = reply;
  const own = reply.getHeaders();
  const { raw } = reply;
  const headers = { ...answerHeaders(head), ...(own as Record<string, string>) };
  try {
    sendHead(raw, head.statusCode as number, Object.entries(headers));
  } catch (error) {
    // Sandboxes decide how often: the refusal alone has a line.
    reply.log.debug({ err: error }, 'an answer of a sandbox cannot be passed on');
    throw noAnswer();
  }
  reply.hijack();
  request.right?.onLoss(() => request.raw.socket.destroy());
  if (!relayRest(raw, head, Number(headers['content-length']))) head.pipe(raw);
  head.once('error', () => {
    if (!raw.writableEnded) raw.destroy();
  });
  raw.once('close', () => head.destroy());
}

/** Passes a body of known length on past the parser and the streams; false, and nothing is changed, if it cannot be. */
function relayRest(raw: ServerResponse, head: IncomingMessage, length: number): boolean {
  const { socket: source } = head;
  const { socket: target } = raw;
  const bytes = length - head.readableLength;
  const has_body = raw.req.method !== 'HEAD' && raw.statusCode !== 204 && raw.statusCode !== 304;
  if (!(bytes > 0) || !has_body || head.complete || !target) return false;
  const onDone = () => {
    raw.end();
    source.destroySoon();
  };
  if (!relayBytes(source, { target, bytes, onDone })) return false;
  const parsed = head.read();
  if (parsed !== null) target.write(parsed);
  return true;
}

/** Connects two upgraded sockets. */
function join(request: FastifyRequest, reply: FastifyReply, answer: Answer, upstream: Upstream): void {
  const upgraded = answer.upgraded as Socket;
  const lines = upstream.upgradeHead(answer.head);
  if (lines === null) {
    upgraded.destroy();
    throw upstream.noAnswer();
  }
  const own = takeUpgrade(request, reply);
  if (!own) {
    upgraded.destroy();
    return;
  }
  own.socket.write(lines, 'latin1');
  if (answer.first.length > 0) own.socket.write(answer.first);
  const frames = new FrameBoundary();
  frames.take(answer.first);
  joinUpgrade(own, upgraded, (bytes) => frames.take(bytes));
  request.right?.onLoss(() => {
    const { socket } = own;
    // Inside a frame, or behind what the client has not read, the word would not be understood.
    if (!frames.is_between || socket.writableLength > 0) socket.destroy();
    else {
      socket.write(closeFrame(POLICY_VIOLATION, revoked().code));
      socket.setTimeout(CLOSE_MS, () => socket.destroy());
    }
    upgraded.destroy();
  });
}
