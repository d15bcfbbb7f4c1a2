import type { Agent, Dispatcher } from 'undici';
import type { Clock, Timer } from '../base/clock.ts';
import {
  CONNECT_TIMEOUT_MS,
  RESPONSE_BODY_TIMEOUT_MS,
  RESPONSE_KEEP_BYTES,
  RESPONSE_READ_BYTES,
} from '../contract/defaults.ts';
import type { AttemptError } from '../contract/deliveries.ts';
import { attemptErrorOf, ConnectError, isConnectTimeout } from './attempt-error.ts';
import {
  blockedDetail,
  errorDetail,
  statusDetail,
  type Target,
  type TransportError,
  timeoutDetail,
} from './error-detail.ts';
import { SharedLookup } from './lookup.ts';
import { beginExchange, type EndExchange } from './parser-tier.ts';
import type { SignedRequest } from './request.ts';
import type { AttemptResult } from './retry.ts';
import type { Connector } from './tunnelled.ts';

/** Makes HTTP attempts. */
export interface Transport {
  /** One attempt, ended within `timeout_ms` whatever the receiver does. Never rejects. */
  send(request: SignedRequest, timeout_ms: number): Promise<AttemptResult>;
  /** Aborts the requests in flight and closes every connection. Idempotent. */
  close(): Promise<void>;
}

/** Makes the way to connections that lead through somebody else; `secure` does TLS over a stream, without a time limit. */
export type MakeConnector = (secure: Connector) => Connector;

/** Attempts over HTTP/1.1 with kept-alive connections. Redirects are never followed. Source: contract sections 2 and 3. */
export class HttpTransport implements Transport {
  readonly #clock: Clock;
  readonly #lookup: SharedLookup;
  readonly #connections: number;
  readonly #connector: MakeConnector | null;
  #agent: Agent | null = null;
  #loading: Promise<Agent> | null = null;
  /** The parsed URL of the last request: nearly all go to the same one. */
  #target = { url: '', origin: '', path: '', query: '', hostname: '', port: 0 };

  /**
   * `connections` is the most connections to one origin; several transports may share a `lookup`. With a `connector`
   * nothing is looked up and dialled here.
   */
  constructor(
    clock: Clock,
    connections: number,
    lookup = new SharedLookup(),
    connector: MakeConnector | null = null,
  ) {
    this.#clock = clock;
    this.#lookup = lookup;
    this.#connections = connections;
    this.#connector = connector;
  }

  /** Loads the HTTP library ahead of the first attempt. */
  static async load(): Promise<void> {
    await import('undici');
  }

  /** The library and its connections, made with the first attempt. */
  #load(): Promise<Agent> {
    this.#loading ??= import('undici').then(({ Agent, buildConnector }) => {
      this.#agent = new Agent({
        connections: this.#connections,
        pipelining: 1,
        allowH2: false,
        // Whatever the environment says: the built programs leave the other parser out.
        useMilo: false,
        // One deadline holds for the whole attempt; the library's own would start anew in each phase.
        headersTimeout: 0,
        bodyTimeout: 0,
        connect: this.#connector
          ? this.#connector(buildConnector({ timeout: 0, allowH2: false }))
          : { timeout: CONNECT_TIMEOUT_MS, lookup: this.#lookup.lookup },
      });
      return this.#agent;
    });
    return this.#loading;
  }

  /** See `Transport.send`. */
  send(request: SignedRequest, timeout_ms: number): Promise<AttemptResult> {
    const target = this.#targetOf(request.url);
    const { origin, path, hostname } = target;
    if (this.#lookup.refusesLiteral(hostname)) return Promise.resolve(refused(target));
    const { headers, body } = request;
    const options: Dispatcher.DispatchOptions = { origin, path, method: 'POST', headers, body };
    return new Promise((resolve) => {
      const isResolving = () => this.#lookup.isPending(hostname);
      const exchange = new Exchange(this.#clock, timeout_ms, target, isResolving, resolve);
      if (this.#agent) this.#agent.dispatch(options, exchange);
      else void this.#load().then((agent) => agent.dispatch(options, exchange));
    });
  }

  #targetOf(url: string): ExchangeTarget & { origin: string; path: string } {
    if (this.#target.url !== url) {
      const { origin, pathname, search, hostname, port: given, protocol } = new URL(url);
      const port = Number(given || (protocol === 'https:' ? 443 : 80));
      this.#target = { url, origin, path: pathname + search, query: search.slice(1), hostname, port };
    }
    return this.#target;
  }

  /** See `Transport.close`. */
  async close(): Promise<void> {
    await (await this.#loading)?.destroy();
  }
}

/** Where a request leads; `query` without its question mark. */
interface ExchangeTarget extends Target {
  query: string;
}

/** One request and its response; resolves once. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #clock: Clock;
  readonly #target: ExchangeTarget;
  readonly #isResolving: () => boolean;
  readonly #resolve: (result: AttemptResult) => void;
  #controller: Dispatcher.DispatchController | null = null;
  readonly #end_ms: number;
  #timer: Timer;
  #given_up = false;
  #endExchange: EndExchange | null = null;
  #status: number | null = null;
  #detail: string | null = null;
  #retry_after: string | null = null;
  #kept: Buffer[] = [];
  #read_bytes = 0;

  constructor(
    clock: Clock,
    timeout_ms: number,
    target: ExchangeTarget,
    isResolving: () => boolean,
    resolve: (result: AttemptResult) => void,
  ) {
    this.#clock = clock;
    this.#target = target;
    this.#isResolving = isResolving;
    this.#resolve = resolve;
    this.#end_ms = clock.monotonicMs() + timeout_ms;
    this.#timer = clock.after(timeout_ms, () => this.#timeOut(timeout_ms));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    this.#endExchange ??= beginExchange();
    // The deadline passed while this request waited for a connection: nothing of it may be sent.
    if (this.#given_up) controller.abort(new Error('given up'));
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
    text?: string,
  ): void {
    this.#endExchange?.(true);
    if (status < 200) return;
    this.#status = status;
    this.#detail = statusDetail(status, text, this.#target.query);
    const retry_after = headers['retry-after'];
    this.#retry_after = (Array.isArray(retry_after) ? retry_after[0] : retry_after) ?? null;
    // The result is known; the rest is read only to make the connection reusable.
    this.#timer.cancel();
    const left_ms = Math.min(RESPONSE_BODY_TIMEOUT_MS, this.#end_ms - this.#clock.monotonicMs());
    this.#timer = this.#clock.after(left_ms, () => this.#giveUp(null));
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#read_bytes < RESPONSE_KEEP_BYTES) {
      this.#kept.push(Buffer.from(chunk.subarray(0, RESPONSE_KEEP_BYTES - this.#read_bytes)));
    }
    this.#read_bytes += chunk.length;
    if (this.#read_bytes > RESPONSE_READ_BYTES) this.#giveUp(null);
  }

  onResponseEnd(): void {
    this.#finish(null);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: TransportError): void {
    if (this.#status !== null) {
      this.#finish(null);
      return;
    }
    const kind = attemptErrorOf(error, this.#isResolving());
    this.#detail = this.#detailOf(kind, error);
    this.#finish(kind);
  }

  #detailOf(kind: AttemptError, error: TransportError): string {
    if (error instanceof ConnectError) return error.detail;
    if (!isConnectTimeout(error)) return errorDetail(kind, error, this.#target);
    return timeoutDetail(kind === 'dns' ? 'resolving' : 'connecting', CONNECT_TIMEOUT_MS, this.#target);
  }

  #timeOut(timeout_ms: number): void {
    const is_resolving = this.#isResolving();
    const stage = is_resolving ? 'resolving' : this.#controller === null ? 'connecting' : 'answering';
    this.#detail = timeoutDetail(stage, timeout_ms, this.#target);
    this.#giveUp(is_resolving ? 'dns' : 'timeout');
  }

  #giveUp(error: AttemptError | null): void {
    this.#given_up = true;
    this.#finish(error);
    this.#controller?.abort(new Error('given up'));
  }

  #finish(error: AttemptError | null): void {
    this.#timer.cancel();
    this.#endExchange?.(false);
    this.#resolve({
      status: this.#status,
      error,
      error_detail: this.#detail,
      retry_after: this.#retry_after,
      response_body: this.#read_bytes > 0 ? textOf(Buffer.concat(this.#kept)) : null,
    });
  }
}

/** An attempt at an address that may not be dialled. */
function refused(target: Target): AttemptResult {
  const error_detail = blockedDetail(target);
  return { status: null, error: 'blocked', error_detail, retry_after: null, response_body: null };
}

/** What is not UTF-8 becomes U+FFFD, and so does U+0000, which no text of PostgreSQL can hold. */
function textOf(bytes: Buffer): string {
  return bytes.toString('utf8').replaceAll('\0', '\uFFFD');
}
