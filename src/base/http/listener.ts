import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CONNECTIONS_MAX, HEADERS_TIMEOUT_MS, REQUEST_TIMEOUT_MS } from '../../contract/defaults.ts';
import { ApiError } from '../../contract/errors.ts';
import { areDescriptorsShort, descriptorLimit } from '../descriptors.ts';
import {
  type BareAnswer,
  bareAnswer,
  bareResponse,
  clientErrorAnswer,
  unknownMethodAnswer,
} from './errors.ts';

/** How often connections are looked at for those that are too slow; the limits below leave room for it. */
const CHECK_INTERVAL_MS = 1_000;
const KEEP_ALIVE_MS = 65_000;
/** How long the client of an early answer may stay silent before its connection ends. */
const LINGER_MS = 1_000;

/**
 * The connections of all listeners of one program. Where all are taken, or descriptors are short, the one that has
 * gone longest without a complete request makes room; one whose answer is under way only where every one is like that.
 */
export class Connections {
  readonly #max: number;
  readonly #descriptor_limit = descriptorLimit();
  /** In the order of their last complete request; the value tells how many answers are under way. */
  readonly #sockets = new Map<Socket, number>();

  constructor(max = CONNECTIONS_MAX) {
    this.#max = max;
  }

  add(socket: Socket): void {
    if (this.#sockets.size >= this.#max || areDescriptorsShort(this.#descriptor_limit)) this.#makeRoom();
    this.#sockets.set(socket, 0);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  requestComplete(socket: Socket): void {
    const answers = this.#sockets.get(socket);
    if (answers === undefined) return;
    this.#sockets.delete(socket);
    this.#sockets.set(socket, answers + 1);
  }

  answered(socket: Socket): void {
    const answers = this.#sockets.get(socket);
    if (answers) this.#sockets.set(socket, answers - 1);
  }

  /** Ends every connection. */
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

/** What answers requests: an application, also one that is still to be made. */
export interface Router {
  routing: (request: IncomingMessage, response: ServerResponse) => void;
  /** The methods that a request's target takes. */
  methodsOf: (target: string) => string[] | Promise<string[]>;
}

export interface ListenerOptions {
  /** Each connection carries one request: whatever follows it is never taken for another, and ends the connection. */
  one_request?: boolean;
}

/** A server for one address, with the contract's time limits. */
export function createListener(
  app: Router,
  connections: Pick<Connections, 'add'>,
  options: ListenerOptions = {},
): Server {
  const router = options.one_request ? new OneRequestRouter(app) : app;
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS - CHECK_INTERVAL_MS,
      requestTimeout: REQUEST_TIMEOUT_MS - CHECK_INTERVAL_MS,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      noDelay: true,
      // The application says so itself, in the envelope.
      requireHostHeader: false,
      // Any other protocol is not offered; the request is answered as it is.
      shouldUpgradeCallback: ({ method, headers }) =>
        method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket',
    },
    (request, response) => {
      if (!request.complete) lingerFor(request, response);
      router.routing(request, response);
    },
  );
  server.on('connection', (socket) => connections.add(socket));
  server.on('upgrade', (request, socket, head) => routeUpgrade(router, request, socket as Socket, head));
  server.on('connect', (request, socket, head) => routeUpgrade(router, request, socket as Socket, head));
  server.on('checkExpectation', (_request, response) => {
    const { status, headers, text } = UNEXPECTED;
    response.writeHead(status, headers).end(text);
  });
  server.on('clientError', (error: ClientError, socket: Socket) => {
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && streaming.has(socket)) return;
    void refuseClient(router, error, socket);
  });
  return server;
}

interface ClientError extends Error {
  code?: string;
  bytesParsed?: number;
  rawPacket?: Buffer;
}

const UNEXPECTED = bareAnswer(417, new ApiError('invalid_request', 'Expect: must be 100-continue'));

/** A method that Node does not know ends its parser, although the request may be whole. */
const REQUEST_LINE = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ (\S+) HTTP\/1\.[01]\r?\n/;

/** Answers what cannot be parsed, where an answer can still be told from the one before. */
async function refuseClient(app: Router, error: ClientError, socket: Socket): Promise<void> {
  const { code = '', bytesParsed = 0, rawPacket } = error;
  // Requests before it may be in the same packet.
  const line_start = (rawPacket?.subarray(0, bytesParsed).lastIndexOf('\n') ?? -1) + 1;
  const line = rawPacket?.toString('latin1', line_start) ?? '';
  const [, target] = (code === 'HPE_INVALID_METHOD' && REQUEST_LINE.exec(line)) || [];
  const answer =
    target === undefined ? clientErrorAnswer(code) : unknownMethodAnswer(await app.methodsOf(target));
  answerBare(socket, answer);
}

/** Writes an answer past the application and ends the connection. */
function answerBare(socket: Socket, answer: BareAnswer): void {
  const under_way = (socket as Socket & { _httpMessage?: ServerResponse })._httpMessage;
  if (socket.writable && !under_way?.headersSent) socket.write(bareResponse(answer));
  socket.destroy();
}

/**
 * Where a request is answered before all of its body has come and the connection is to end, what still comes is
 * thrown away for a moment: a reset would take the answer from the client. Source: RFC 9112, section 9.6.
 */
function lingerFor(request: IncomingMessage, response: ServerResponse): void {
  // Before Node's own listener, which ends the connection.
  response.prependOnceListener('finish', () => {
    const { socket } = request;
    if (request.complete || !socket) return;
    socket.destroySoon = () => {
      socket.end();
      socket.setTimeout(LINGER_MS);
    };
  });
}

/** Ends a connection that brings a second request. */
class OneRequestRouter implements Router {
  readonly #app: Router;
  readonly #used = new WeakSet<Socket>();

  constructor(app: Router) {
    this.#app = app;
  }

  methodsOf(target: string): string[] | Promise<string[]> {
    return this.#app.methodsOf(target);
  }

  routing(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    if (this.#used.has(socket)) {
      socket.destroy();
      return;
    }
    this.#used.add(socket);
    response.shouldKeepAlive = false;
    this.#app.routing(request, response);
  }
}

/** What is left of a connection once its request for a WebSocket has been read. */
export interface Upgrade {
  socket: Socket;
  /** Bytes behind the request. */
  head: Buffer;
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>();

/** A request for a WebSocket takes the way of all others, so that it is guarded and refused like them. */
function routeUpgrade(app: Router, request: IncomingMessage, socket: Socket, head: Buffer): void {
  socket.on('error', () => {});
  upgrades.set(request, { socket, head });
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  try {
    response.assignSocket(socket);
  } catch {
    // The answer to the request before it is under way.
    socket.destroy();
    return;
  }
  response.once('finish', () => socket.destroySoon());
  app.routing(request, response);
}

/** The connection of a request for a WebSocket, taken out of HTTP; null for any other request. */
export function takeUpgrade(request: FastifyRequest, reply: FastifyReply): Upgrade | null {
  const upgrade = upgrades.get(request.raw);
  if (!upgrade) return null;
  reply.hijack();
  reply.raw.detachSocket(upgrade.socket);
  return upgrade;
}

/** Whether a request asks for a WebSocket. */
export function isUpgrade(request: FastifyRequest): boolean {
  return upgrades.has(request.raw);
}

/** Sockets whose request body is a stream of any length: the limit on a request's time does not hold for them. */
const streaming = new WeakSet<Socket>();

/** Lifts the limit on a request's time while its body streams in. */
export function allowLongBody(request: FastifyRequest, reply: FastifyReply): void {
  streaming.add(request.raw.socket);
  reply.raw.once('close', () => streaming.delete(request.raw.socket));
}
