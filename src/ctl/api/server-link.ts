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
import type { Answer, Connector, SentRequest } from '../../client/connector.ts';
import { errorOfAnswer, SandboxdError } from '../../client/error.ts';
import { jsonIn } from '../../client/message.ts';
import { type OpenSocket, textsOf } from '../../client/streams/socket.ts';
import { CONTROL_SCOPE_HEADER, type ControlScope } from '../../contract/control-socket.ts';
import type { ErrorCode } from '../../contract/errors.ts';
import { Failure, reason } from '../failure.ts';
import { checkedConnection } from './checked-connection.ts';
import { type Address, API_PATH, type Token } from './config.ts';
import { namedMessage } from './named-error.ts';
import { NodeAnswer } from './node-answer.ts';

/** A request that is passed on. */
export interface PassedRequest {
  headers?: OutgoingHttpHeaders;
  /** A stream is sent as it comes; its length may be told in the headers. */
  body?: string | Uint8Array | Readable | undefined;
  /** How long the server may stay silent, in ms; 0 is forever. */
  timeout_ms: number;
  signal?: AbortSignal | undefined;
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
 * The client's way to a daemon, by its control socket or a port, or to a manager; with the words for a person at a terminal
 * in its errors. Contract sections 4 and 7.
 */
export class ServerLink implements Connector {
  readonly #address: Address;
  readonly #token: Token;

  constructor(address: Address, token: Token) {
    this.#address = address;
    this.#token = token;
  }

  /** The address as messages show it. */
  get shown(): string {
    return this.#address.shown;
  }

  /**
   * Sends a request of the client. Without `accept` its answer is JSON in the envelope of section 4; with it, a stream of that
   * type, of which no silence is too long. Every other answer is a failure: it is not what was asked for.
   */
  async send({ method, url, headers, timeout_ms, ...request }: SentRequest): Promise<Answer> {
    const { accept } = headers;
    const message = await this.#request(method, url, {
      ...(request as Pick<PassedRequest, 'body' | 'signal'>),
      headers,
      timeout_ms: timeout_ms ?? (accept === undefined ? SILENCE_TIMEOUT_MS : 0),
    });
    const { statusCode: status = 0 } = message;
    const is_success = status >= 200 && status < 300;
    if (is_success && accept !== undefined) {
      if (mediaType(message) === accept) return new NodeAnswer(message, undefined);
      message.destroy();
      const words = `${this.shown} answered with ${mediaType(message)} instead of ${accept}`;
      throw new SandboxdError({ code: 'bad_answer', message: words, status });
    }
    const value = jsonIn(await this.#read(message)) as { success?: unknown } | null | undefined;
    if (status === NO_CONTENT || (is_success && value?.success === true))
      return new NodeAnswer(message, value);
    throw this.#refusal(message, value, url.pathname);
  }

  /** Passes a request on; resolves with whatever is answered, its body still to be read. `path` is below the API's. */
  ask(method: string, path: string, request: PassedRequest): Promise<IncomingMessage> {
    return this.#request(method, this.#urlOf(path), request);
  }

  async connect(url: URL, _token: string | null, signal: AbortSignal | undefined): Promise<OpenSocket> {
    const opening = await this.#open(url);
    const texts = textsOf(opening as unknown as globalThis.WebSocket, opening);
    const onAbort = () => opening.terminate();
    signal?.addEventListener('abort', onAbort, { once: true });
    const opened = await this.#opened(opening, url.pathname).finally(() => {
      signal?.removeEventListener('abort', onAbort);
    });
    // An orderly end would wait for the other side.
    const socket = {
      send: (data: string) => opened.send(data),
      close: () => opened.terminate(),
      get readyState() {
        return opened.readyState;
      },
      get bufferedAmount() {
        return opened.bufferedAmount;
      },
    };
    return { socket: socket as OpenSocket['socket'], texts };
  }

  /** Opens a WebSocket below the API's path; resolves once it is open, paused so that no early message is lost. */
  async open(path: string): Promise<WebSocket> {
    const url = this.#urlOf(path);
    const opening = await this.#open(url);
    opening.once('open', () => opening.pause());
    return this.#opened(opening, url.pathname);
  }

  async #open({ protocol, host, pathname, search }: URL): Promise<WebSocket> {
    const { socket_path } = this.#address;
    const [{ WebSocket }, connection] = await Promise.all([import('ws'), this.#connection(undefined)]);
    const scheme = ['https:', 'wss:'].includes(protocol) ? 'wss:' : 'ws:';
    const target =
      socket_path === null
        ? `${scheme}//${host}${pathname}${search}`
        : `ws+unix://${socket_path}:${pathname}${search}`;
    const headers = this.#authorization;
    return new WebSocket(target, { headers, perMessageDeflate: false, ...connection });
  }

  #opened(opening: WebSocket, path: string): Promise<WebSocket> {
    return new Promise((resolve, reject) => {
      opening.once('open', () => resolve(opening));
      opening.on('error', (error) => reject(this.#unreachable(error)));
      opening.once('upgrade', ({ socket }) => keepAlive(socket));
      opening.once('unexpected-response', (_request, response) => {
        this.#read(response).then((text) => reject(this.#refusal(response, jsonIn(text), path)), reject);
      });
    });
  }

  async #request(
    method: string,
    url: URL,
    { headers, body, timeout_ms, signal }: PassedRequest,
  ): Promise<IncomingMessage> {
    const { socket_path } = this.#address;
    const connection = await this.#connection(signal);
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, {
      method,
      // One connection per request, because a kept one may be closed by the time it is used again.
      ...(connection ?? { agent: false }),
      ...(socket_path === null ? {} : { socketPath: socket_path }),
      ...(signal ? { signal } : {}),
      headers: {
        ...this.#authorization,
        ...(isInMemory(body) ? { 'content-length': Buffer.byteLength(body) } : {}),
        ...headers,
      },
    });
    request.setTimeout(timeout_ms, () => {
      request.destroy(new Error(`no answer within ${timeout_ms / 1_000} s`));
    });
    return new Promise((resolve, reject) => {
      request.on('socket', keepAlive);
      request.on('response', resolve);
      // What this side broke off for a reason of its own, such as a source that fails, says that reason.
      request.on('error', (error) => reject(error instanceof Failure ? error : this.#unreachable(error)));
      // Such as after an answer that changes to another protocol.
      request.on('close', () => reject(this.#unreachable(new Error('no answer'))));
      sendBody(request, body);
    });
  }

  /** A connection to a program that may have the token; null where no check is required. */
  async #connection(signal: AbortSignal | undefined): Promise<{ createConnection: () => Socket } | null> {
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

  #urlOf(path: string): URL {
    const { url } = this.#address;
    return new URL(`${url.pathname.replace(/\/$/, '')}${API_PATH}${path}`, url);
  }

  async #read(response: IncomingMessage): Promise<string> {
    const chunks: Buffer[] = [];
    let size_bytes = 0;
    try {
      for await (const chunk of response) {
        size_bytes += chunk.length;
        if (size_bytes > ANSWER_MAX_BYTES) {
          const message = `the answer of ${this.shown} is too long`;
          throw new SandboxdError({ code: 'bad_answer', message, status: response.statusCode ?? 0 });
        }
        chunks.push(chunk);
      }
    } catch (error) {
      throw error instanceof SandboxdError ? error : this.#unreachable(error);
    }
    return Buffer.concat(chunks).toString();
  }

  #unreachable(cause: unknown): SandboxdError {
    const message = `cannot reach the ${NAMES[this.#address.of][0]} at ${this.shown}: ${reason(cause)}`;
    return new SandboxdError({ code: 'unreachable', message, status: 0, cause });
  }

  #refusal(response: IncomingMessage, value: unknown, path: string): SandboxdError {
    const error = errorOfAnswer(new NodeAnswer(response, value), value);
    const { code, status, details, request_id, retry_after_ms } = error;
    const hints = [
      retry_after_ms === null ? '' : `; try again in ${retry_after_ms / 1_000} s`,
      code === 'unauthorized' && 'missing' in this.#token
        ? `; ${this.#token.missing}; name another file with --token-file`
        : '',
    ];
    const text = `${namedMessage({ code: code as ErrorCode, message: error.message, details }, path)} (${code})`;
    const message =
      code === 'bad_answer'
        ? `${this.shown} answered ${status} and is not a ${NAMES[this.#address.of][1]}`
        : `${text.slice(0, MESSAGE_MAX_LENGTH)}${hints.join('')}`;
    return new SandboxdError({ code, message, status, details, request_id, retry_after_ms });
  }
}

/** Tells a connection that is gone from one on which nothing happens, also where a router in between has forgotten it. */
function keepAlive(socket: Socket): void {
  socket.setKeepAlive(true, KEEP_ALIVE_MS);
}

/** The media type of an answer, without parameters; `no type` where it has none. */
function mediaType({ headers }: IncomingMessage): string {
  return (headers['content-type'] ?? 'no type').split(';')[0]?.trim().toLowerCase() ?? '';
}

/** Whether all of a body is there. */
function isInMemory(body: PassedRequest['body']): body is string | Uint8Array {
  return typeof body === 'string' || body instanceof Uint8Array;
}

/** Ends a request with its body. A stream that fails cuts the request; an answer that comes before its end ends it. */
function sendBody(request: ClientRequest, body: PassedRequest['body']): void {
  if (body === undefined || isInMemory(body)) {
    request.end(body);
    return;
  }
  body.once('error', (error) => request.destroy(error));
  request.once('response', () => body.unpipe(request));
  request.once('close', () => body.destroy());
  body.pipe(request);
}
