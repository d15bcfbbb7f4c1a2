import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CONNECTIONS_MAX, HEADERS_TIMEOUT_MS, REQUEST_TIMEOUT_MS } from '../../contract/defaults.ts';
import { ApiError } from '../../contract/errors.ts';
import { systemClock } from '../clock.ts';
import { refuseRequests, replaceClosing, responseInProgress } from '../engine/node-http.ts';
import { areDescriptorsShort, descriptorLimit } from '../linux/descriptors.ts';
import { acceptMany } from './accept-many.ts';
import {
  type BareAnswer,
  bareAnswer,
  bareResponse,
  clientErrorAnswer,
  unknownMethodAnswer,
} from './errors.ts';
import { limitRequests } from './slow-clients.ts';
import { UnreadAnswers } from './unread-answers.ts';

/** How often Node checks for slow connections; the time limits below subtract it. */
const CHECK_INTERVAL_MS = 1_000;
const KEEP_ALIVE_MS = 65_000;
/** After the last answer, how long the client may stay silent before its connection is closed, in ms, */
const LINGER_MS = 1_000;
/** and how much more it may send if that is no body, in bytes. */
const LINGER_MAX_BYTES = 1024 * 1024;

/**
 * The connections of all listeners of one program. At the limit, or when descriptors run short, a new connection
 * replaces the one whose last complete request is oldest; one with an answer in progress only if all have one.
 */
export class Connections {
  readonly #max: number;
  readonly #descriptor_limit = descriptorLimit();
  /** In the order of their last complete request; the value is the number of answers in progress. */
  readonly #sockets = new Map<Socket, number>();
  readonly #unread = new UnreadAnswers();

  constructor(max = CONNECTIONS_MAX) {
    this.#max = max;
  }

  /** Counts a new connection; may close an older one. */
  add(socket: Socket): void {
    if (this.#sockets.size >= this.#max || areDescriptorsShort(this.#descriptor_limit)) this.#makeRoom();
    this.#sockets.set(socket, 0);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  /** Notes that a request has arrived completely. */
  requestComplete(socket: Socket): void {
    const answers = this.#sockets.get(socket);
    if (answers === undefined) return;
    this.#sockets.delete(socket);
    this.#sockets.set(socket, answers + 1);
    this.#unread.look(this.#sockets.keys());
  }

  /** Notes that an answer has been sent. */
  answered(socket: Socket): void {
    const answers = this.#sockets.get(socket);
    if (answers) this.#sockets.set(socket, answers - 1);
  }

  /** Closes every connection. */
  close(): void {
    for (const socket of this.#sockets.keys()) socket.destroy();
  }

  #makeRoom(): void {
    let oldest: Socket | undefined;
    for (const [socket, answers] of this.#sockets) {
      oldest ??= socket;
      if (answers > 0) continue;
      oldest = socket;
      break;
    }
    if (!oldest) return;
    this.#sockets.delete(oldest);
    oldest.destroy();
  }
}

/** Something that answers requests: an application, possibly one that is created on first use. */
export interface Router {
  /** Answers a request. */
  routing: (request: IncomingMessage, response: ServerResponse) => void;
  /** The methods allowed for a request's target; empty if no such path exists. */
  methodsOf: (target: string) => string[] | Promise<string[]>;
}

/** Options of `createListener`. */
export interface ListenerOptions {
  /** Each connection carries one request: whatever follows it is never taken for another one. */
  one_request?: boolean;
  /** The protocols, in lower case, that a GET may ask to upgrade to; `websocket` by default. */
  upgrades?: string[];
}

/**
 * Creates a server for one address, with the contract's time limits. A request that arrives before the one before it is
 * answered is not served: Node would have the application answer all of them at once.
 */
export function createListener(
  app: Router,
  connections: Pick<Connections, 'add'>,
  options: ListenerOptions = {},
): Server {
  const protocols = new Set(options.upgrades ?? ['websocket']);
  const server = createServer(
    {
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      noDelay: true,
      // The application checks it, and answers in the envelope.
      requireHostHeader: false,
      // Requests to upgrade to any other protocol are answered as plain requests.
      shouldUpgradeCallback: ({ method, headers }) =>
        method === 'GET' && protocols.has(headers.upgrade?.toLowerCase() ?? ''),
    },
    (request, response) => {
      if (options.one_request) response.shouldKeepAlive = false;
      if (!request.complete) lingerFor(request, response);
      app.routing(request, response);
    },
  );
  limitRequests(server, systemClock, {
    headers_ms: HEADERS_TIMEOUT_MS - CHECK_INTERVAL_MS,
    request_ms: REQUEST_TIMEOUT_MS - CHECK_INTERVAL_MS,
    check_ms: CHECK_INTERVAL_MS,
  });
  server.on('connection', (socket) => {
    connections.add(socket);
    refuseRequests(socket, () => isTaken(socket));
  });
  acceptMany(server);
  const onUpgrade = (request: IncomingMessage, stream: Duplex, head: Buffer) => {
    const socket = stream as Socket;
    socket.on('error', () => {});
    if (isTaken(socket)) closeAfterAnswer(socket);
    else routeUpgrade(app, request, socket, head);
  };
  server.on('upgrade', onUpgrade);
  server.on('connect', onUpgrade);
  server.on('checkExpectation', (_request, response) => {
    const { status, headers, text } = UNEXPECTED;
    response.writeHead(status, headers).end(text);
  });
  server.on('clientError', (error: ClientError, socket: Socket) => {
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && streaming.has(socket)) return;
    void refuseClient(app, error, socket);
  });
  return server;
}

interface ClientError extends Error {
  code?: string;
  bytesParsed?: number;
  rawPacket?: Buffer;
}

const UNEXPECTED = bareAnswer(417, new ApiError('invalid_request', 'Expect: must be 100-continue'));

/** Node's parser gives up on an unknown method even if the request is complete. */
const REQUEST_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) (\S+) HTTP\/1\.[01]\r?\n/;

/** Answers a request that cannot be parsed, unless another answer is already in progress. */
async function refuseClient(app: Router, error: ClientError, socket: Socket): Promise<void> {
  const { code = '', bytesParsed = 0, rawPacket } = error;
  // The same packet may hold earlier requests.
  const line_start = (rawPacket?.subarray(0, bytesParsed).lastIndexOf('\n') ?? -1) + 1;
  const line = rawPacket?.toString('latin1', line_start) ?? '';
  const [, method = '', target] = (code === 'HPE_INVALID_METHOD' && REQUEST_LINE.exec(line)) || [];
  const answer =
    target === undefined
      ? clientErrorAnswer(code)
      : unknownMethodAnswer(method, target, await app.methodsOf(target));
  answerBare(socket, answer);
}

/** Writes an answer past the application and ends the connection. */
function answerBare(socket: Socket, answer: BareAnswer): void {
  if (socket.writable && !responseInProgress(socket)?.headersSent) socket.write(bareResponse(answer));
  socket.destroy();
}

/**
 * When a request is answered before its whole body has arrived and the connection is to end, the rest of the body is
 * discarded for a moment: a reset would make the client lose the answer. Source: RFC 9112, section 9.6.
 */
function lingerFor(request: IncomingMessage, response: ServerResponse): void {
  // Must run before Node's own listener, which ends the connection.
  response.prependOnceListener('finish', () => {
    const { socket } = request;
    if (request.complete || !socket) return;
    replaceClosing(socket, () => {
      socket.end();
      socket.setTimeout(LINGER_MS);
    });
  });
}

/** Whether a connection is sending an answer, or has sent its last one: it takes no request then. */
function isTaken(socket: Socket): boolean {
  return responseInProgress(socket) !== undefined || socket.writableEnded;
}

/**
 * Closes a connection after the answer that it is sending. Its requests are no longer parsed, and what the client sends is
 * left to the kernel until then.
 */
function closeAfterAnswer(socket: Socket): void {
  const response = responseInProgress(socket);
  if (!response) {
    socket.destroy();
    return;
  }
  response.shouldKeepAlive = false;
  // Node no longer does so once the parser is gone.
  socket.on('drain', () => response.writableNeedDrain && response.emit('drain'));
  response.prependOnceListener('finish', () => {
    let left_bytes = LINGER_MAX_BYTES;
    replaceClosing(socket, () => {});
    socket.end();
    socket.setTimeout(LINGER_MS, () => socket.destroy());
    socket.resume().on('data', ({ length }: Buffer) => {
      left_bytes -= length;
      if (left_bytes < 0) socket.destroy();
    });
  });
}

/** A connection whose request to upgrade to another protocol has been read. */
export interface Upgrade {
  socket: Socket;
  /** Bytes that followed the request. */
  head: Buffer;
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>();

/** Routes an upgrade request like any other, so that the same checks and errors apply. */
function routeUpgrade(app: Router, request: IncomingMessage, socket: Socket, head: Buffer): void {
  upgrades.set(request, { socket, head });
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once('finish', () => socket.destroySoon());
  app.routing(request, response);
}

/** Detaches the connection of an upgrade request from HTTP; null for any other request. */
export function takeUpgrade(request: FastifyRequest, reply: FastifyReply): Upgrade | null {
  const upgrade = upgrades.get(request.raw);
  if (!upgrade) return null;
  reply.hijack();
  reply.raw.detachSocket(upgrade.socket);
  return upgrade;
}

/** Whether a request asks for an upgrade to a protocol, in lower case. */
export function isUpgrade(request: FastifyRequest, protocol = 'websocket'): boolean {
  return upgrades.has(request.raw) && request.headers.upgrade?.toLowerCase() === protocol;
}

/** Sockets whose request body is a stream of any length: the request time limit does not apply to them. */
const streaming = new WeakSet<Socket>();

/** Lifts the request time limit until the answer is closed. */
export function allowLongBody(request: FastifyRequest, reply: FastifyReply): void {
  streaming.add(request.raw.socket);
  reply.raw.once('close', () => streaming.delete(request.raw.socket));
}
