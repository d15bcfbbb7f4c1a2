import {
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
} from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { WebSocket } from 'ws';
import { CONTROL_SCOPE_HEADER, type ControlScope } from '../../contract/control-scopes.ts';
import type { ErrorCode } from '../../contract/errors.ts';
import { EXIT, Failure, reason } from '../failure.ts';
import { checkedConnection } from './checked-connection.ts';
import type { Address, Token } from './config.ts';
import { namedMessage } from './named-error.ts';

/** What a request carries beside method and path. */
export interface RequestOptions {
  /** A list is repeated in the query. */
  query?: Record<string, string | number | readonly string[] | undefined>;
  headers?: OutgoingHttpHeaders;
  /** The length of a stream may be told in the headers. */
  body?: RequestBody;
  /** How long the daemon may stay silent, in ms (default 30 s); 0 means forever. */
  silence_timeout_ms?: number;
  signal?: AbortSignal;
}

/** An error that the daemon or manager answered. `code` is null where the answer is that of neither. */
export class DaemonError extends Failure {
  readonly code: ErrorCode | null;
  /** What it says beside the message; null where it says nothing more. */
  readonly details: Record<string, unknown> | null;

  constructor(code: ErrorCode | null, message: string, details: unknown = null) {
    super(EXIT.failed, message);
    this.code = code;
    this.details = typeof details === 'object' ? (details as Record<string, unknown> | null) : null;
  }
}

/** A user at the control socket may do everything. */
const SCOPE: ControlScope = 'manage';
/** Longer than `POST /webhook/test` waits for its delivery. */
const SILENCE_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_MS = 30_000;
const NO_CONTENT = 204;
/** More than a page of the longest records. */
const ANSWER_MAX_BYTES = 128 * 1024 * 1024;
const MESSAGE_MAX_LENGTH = 2_000;

/** How messages name whose answer is awaited, and what answers otherwise. */
const NAMES = { daemon: ['daemon', 'sandboxd daemon'], manager: ['manager', 'sandbox-manager'] } as const;

/**
 * A client of the daemon's local API (contract section 4), of the manager's (section 7), or of a sandbox's daemon through
 * its manager. Every method rejects with a `Failure`.
 */
export class Client {
  readonly #address: Address;
  readonly #token: Token;

  constructor(address: Address, token: Token) {
    this.#address = address;
    this.#token = token;
  }

  /** A client of the routes below this path. */
  below(path: string): Client {
    return new Client({ ...this.#address, api_path: this.#address.api_path + path }, this.#token);
  }

  /** Sends one request below `/api/v1`; resolves with the `data` of a successful answer. */
  async call<Data>(method: string, path: string, options: RequestOptions = {}): Promise<Data> {
    const response = await this.#send(method, path, options);
    const answer = parseAnswer(await this.#read(response));
    if (response.statusCode === NO_CONTENT) return undefined as Data;
    if (isSuccess(response) && answer?.success === true) return answer.data as Data;
    throw this.#errorOf(response, answer, path);
  }

  /**
   * Opens a stream of this media type: resolves with the response once the daemon has accepted, its body still to be
   * read. Any other type is a failure: it is not what was asked for.
   */
  async stream(
    path: string,
    { type, ...options }: RequestOptions & { type: string },
  ): Promise<IncomingMessage> {
    const response = await this.#send('GET', path, { ...options, silence_timeout_ms: 0 });
    if (isSuccess(response)) {
      if (mediaType(response) === type) return response;
      response.destroy();
      throw new DaemonError(null, `${this.shown} answered with ${mediaType(response)} instead of ${type}`);
    }
    throw this.#errorOf(response, parseAnswer(await this.#read(response)), path);
  }

  /** Sends one request below `/api/v1`; resolves with whatever is answered, its body still to be read. */
  ask(method: string, path: string, options: RequestOptions): Promise<IncomingMessage> {
    return this.#send(method, path, options);
  }

  /** Opens a WebSocket below `/api/v1`; resolves once the daemon has accepted, paused so that no early message is lost. */
  async connect(path: string, query: RequestOptions['query'] = {}): Promise<WebSocket> {
    const [{ WebSocket }, connection] = await Promise.all([import('ws'), this.#connection()]);
    const socket = new WebSocket(this.#webSocketUrl(path, query), {
      headers: this.#authorization,
      perMessageDeflate: false,
      ...connection,
    });
    return new Promise((resolve, reject) => {
      socket.once('open', () => {
        socket.pause();
        resolve(socket);
      });
      socket.on('error', (error) => reject(this.#unreachable(error)));
      socket.once('upgrade', ({ socket: connected }) => keepAlive(connected));
      socket.once('unexpected-response', (_request, response) => {
        this.#read(response).then((text) => reject(this.#errorOf(response, parseAnswer(text), path)), reject);
      });
    });
  }

  /** The daemon's address as messages show it. */
  get shown(): string {
    return this.#address.shown;
  }

  async #send(method: string, path: string, options: RequestOptions): Promise<IncomingMessage> {
    const { socket_path } = this.#address;
    const target = this.#target(path, options.query);
    const connection = await this.#connection(options.signal);
    const request = (target.protocol === 'https:' ? httpsRequest : httpRequest)(target, {
      method,
      // One connection per request, because a kept one may be closed by the time it is used again.
      ...(connection ?? { agent: false }),
      ...(socket_path === null ? {} : { socketPath: socket_path }),
      ...(options.signal ? { signal: options.signal } : {}),
      headers: {
        ...this.#authorization,
        ...(isInMemory(options.body) ? { 'content-length': Buffer.byteLength(options.body) } : {}),
        ...options.headers,
      },
    });
    const silence_timeout_ms = options.silence_timeout_ms ?? SILENCE_TIMEOUT_MS;
    request.setTimeout(silence_timeout_ms, () => {
      request.destroy(new Error(`no answer within ${silence_timeout_ms / 1_000} s`));
    });
    return new Promise((resolve, reject) => {
      request.on('socket', keepAlive);
      request.on('response', resolve);
      // What this side broke off for a reason of its own, such as a source that fails, says that reason.
      request.on('error', (error) => reject(error instanceof Failure ? error : this.#unreachable(error)));
      // Such as after an answer that changes to another protocol.
      request.on('close', () => reject(this.#unreachable(new Error('no answer'))));
      sendBody(request, options.body);
    });
  }

  /** A connection to a program that may have the token; null where no check is required. */
  async #connection(signal?: AbortSignal): Promise<{ createConnection: () => Socket } | null> {
    const owner = 'value' in this.#token ? this.#token.owner : undefined;
    if (!owner || this.#address.socket_path !== null) return null;
    try {
      const socket = await checkedConnection(this.#address.url, owner, signal);
      return { createConnection: () => socket };
    } catch (error) {
      throw error instanceof Failure ? error : this.#unreachable(error);
    }
  }

  /** The control socket takes no token: the mode of its file protects it. */
  get #authorization(): Record<string, string> {
    if (this.#address.socket_path !== null) return { [CONTROL_SCOPE_HEADER]: SCOPE };
    return 'value' in this.#token ? { authorization: `Bearer ${this.#token.value}` } : {};
  }

  #target(path: string, query: RequestOptions['query'] = {}): URL {
    const { url, api_path } = this.#address;
    const target = new URL(`${url.pathname.replace(/\/$/, '')}${api_path}${path}`, url);
    for (const [name, value] of Object.entries(query)) {
      for (const each of [value ?? []].flat()) target.searchParams.append(name, String(each));
    }
    return target;
  }

  #webSocketUrl(path: string, query: RequestOptions['query']): string {
    const { socket_path } = this.#address;
    const { protocol, host, pathname, search } = this.#target(path, query);
    if (socket_path !== null) return `ws+unix://${socket_path}:${pathname}${search}`;
    return `${protocol === 'https:' ? 'wss:' : 'ws:'}//${host}${pathname}${search}`;
  }

  async #read(response: IncomingMessage): Promise<string> {
    const chunks: Buffer[] = [];
    let size_bytes = 0;
    try {
      for await (const chunk of response) {
        size_bytes += chunk.length;
        if (size_bytes > ANSWER_MAX_BYTES)
          throw new Failure(EXIT.failed, `the answer of ${this.shown} is too long`);
        chunks.push(chunk);
      }
    } catch (error) {
      throw error instanceof Failure ? error : this.#unreachable(error);
    }
    return Buffer.concat(chunks).toString();
  }

  #unreachable(error: unknown): Failure {
    return new Failure(
      EXIT.unreachable,
      `cannot reach the ${NAMES[this.#address.of][0]} at ${this.shown}: ${reason(error)}`,
    );
  }

  #errorOf(response: IncomingMessage, answer: Answer | null, path: string): DaemonError {
    const error = answer?.error;
    if (!error) {
      return new DaemonError(
        null,
        `${this.shown} answered ${response.statusCode} and is not a ${NAMES[this.#address.of][1]}`,
      );
    }
    const retry_after = response.headers['retry-after'];
    const hints = [
      retry_after ? `; try again in ${retry_after} s` : '',
      error.code === 'unauthorized' && 'missing' in this.#token
        ? `; ${this.#token.missing}; name another file with --token-file`
        : '',
    ];
    const message = namedMessage(error, this.#address.api_path + path);
    const text = `${message} (${error.code})`.slice(0, MESSAGE_MAX_LENGTH);
    return new DaemonError(error.code, `${text}${hints.join('')}`, error.details);
  }
}

/** Tells a connection that is gone from one on which nothing happens, also where a router in between has forgotten it. */
function keepAlive(socket: Socket): void {
  socket.setKeepAlive(true, KEEP_ALIVE_MS);
}

/** A text as one segment of a path; two that would lead elsewhere are a `Failure`, as no id is like them. */
export function pathSegment(text: string): string {
  if (text === '.' || text === '..') throw new Failure(EXIT.failed, `${text} is no id`);
  return encodeURIComponent(text);
}

/** The envelope of an answer, as far as it is one. Contract section 4, "The local API". */
interface Answer {
  success?: boolean;
  data?: unknown;
  error?: { code: ErrorCode; message: string; details?: unknown };
}

/** Whether the status of an answer is 2xx. */
function isSuccess({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode < 300;
}

/** The media type of an answer, without parameters; `no type` where it has none. */
function mediaType({ headers }: IncomingMessage): string {
  return (headers['content-type'] ?? 'no type').split(';')[0]?.trim().toLowerCase() ?? '';
}

/** The envelope in a text; null if it is no JSON. */
function parseAnswer(text: string): Answer | null {
  try {
    return JSON.parse(text) as Answer | null;
  } catch {
    return null;
  }
}

/** The body of a request; a stream is sent as it comes. */
type RequestBody = string | Uint8Array | Readable;

/** Whether all of a body is there. */
function isInMemory(body: RequestBody | undefined): body is string | Uint8Array {
  return typeof body === 'string' || body instanceof Uint8Array;
}

/** Ends a request with its body. A stream that fails cuts the request; an answer that comes before its end ends it. */
function sendBody(request: ClientRequest, body: RequestBody | undefined): void {
  if (body === undefined || isInMemory(body)) {
    request.end(body);
    return;
  }
  body.once('error', (error) => request.destroy(error));
  request.once('response', () => body.unpipe(request));
  request.once('close', () => body.destroy());
  body.pipe(request);
}
