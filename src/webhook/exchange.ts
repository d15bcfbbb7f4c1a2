import type { Dispatcher } from 'undici';
import { type Clock, runTime, type Timer } from '../base/clock.ts';
import { beginExchange, type EndExchange } from '../base/engine/response-parser.ts';
import {
  CONNECT_TIMEOUT_MS,
  RESPONSE_BODY_TIMEOUT_MS,
  RESPONSE_KEEP_BYTES,
  RESPONSE_READ_BYTES,
} from '../contract/defaults.ts';
import type { AttemptError } from '../contract/words.ts';
import { attemptErrorOf, ConnectError, isConnectTimeout } from './attempt-error.ts';
import {
  errorDetail,
  statusDetail,
  type Target,
  type TransportError,
  timeoutDetail,
} from './error-detail.ts';
import type { SharedLookup } from './lookup.ts';
import type { AttemptResult } from './retry.ts';

const NO_CONTENT = 204;

/** The headers of a response, their names in lower case. */
type ResponseHeaders = Record<string, string | string[] | undefined>;

/** Where a request leads; `query` without its question mark. */
export interface RequestTarget extends Target {
  url: string;
  origin: string;
  path: string;
  query: string;
}

/** A connection as a request sees it. */
export interface UsedConnection {
  /** Answers that it has carried. */
  answers: number;
}

/** One request and its response; resolves once. */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #clock: Clock;
  readonly #target: RequestTarget;
  readonly #lookup: Pick<SharedLookup, 'isPending'>;
  readonly #resolve: (result: AttemptResult) => void;
  /** Sends the request once more, on a new connection; null once that is done. */
  #again: (() => void) | null;
  #connection: UsedConnection | null = null;
  #has_begun = false;
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
    target: RequestTarget,
    lookup: Pick<SharedLookup, 'isPending'>,
    resolve: (result: AttemptResult) => void,
    again: () => void,
  ) {
    this.#clock = runTime(clock);
    this.#target = target;
    this.#lookup = lookup;
    this.#resolve = resolve;
    this.#again = again;
    this.#end_ms = this.#clock.monotonicMs() + timeout_ms;
    this.#timer = this.#clock.after(timeout_ms, () => this.#timeOut(timeout_ms));
  }

  /** Notes which connection carries the request. */
  over(connection: UsedConnection): void {
    this.#connection = connection;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    this.#endExchange ??= beginExchange();
    // The deadline passed while this request waited for a connection: nothing of it may be sent.
    if (this.#given_up) controller.abort(new Error('given up'));
  }

  onResponseStarted(): void {
    this.#has_begun = true;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: ResponseHeaders,
    text?: string,
  ): void {
    this.#endExchange?.(true);
    if (status < 200) return;
    this.#status = status;
    this.#detail = statusDetail(status, text, this.#target.query);
    const retry_after = headers['retry-after'];
    this.#retry_after = (Array.isArray(retry_after) ? retry_after[0] : retry_after) ?? null;
    // It has ended already, and `onResponseEnd` is next.
    if (isEmpty(status, headers)) return;
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
    if (this.#connection) this.#connection.answers += 1;
    this.#finish(null);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: TransportError): void {
    if (this.#status !== null) {
      this.#finish(null);
      return;
    }
    const kind = attemptErrorOf(error, this.#is_resolving);
    if (kind === 'reset' && this.#sendAgain()) return;
    this.#detail = this.#detailOf(kind, error);
    this.#finish(kind);
  }

  /**
   * Sends the request once more if the receiver closed a kept connection as it was used: that says nothing of the
   * request. Receivers know a repeated event by its id. Returns whether it did.
   */
  #sendAgain(): boolean {
    const again = this.#again;
    const is_kept = this.#connection !== null && this.#connection.answers > 0;
    if (again === null || !is_kept || this.#has_begun || this.#given_up) return false;
    this.#again = null;
    this.#controller = null;
    this.#connection = null;
    again();
    return true;
  }

  get #is_resolving(): boolean {
    return this.#lookup.isPending(this.#target.hostname);
  }

  #detailOf(kind: AttemptError, error: TransportError): string {
    if (error instanceof ConnectError) return error.detail;
    if (!isConnectTimeout(error)) return errorDetail(kind, error, this.#target);
    return timeoutDetail(kind === 'dns' ? 'resolving' : 'connecting', CONNECT_TIMEOUT_MS, this.#target);
  }

  #timeOut(timeout_ms: number): void {
    if (this.#status !== null) {
      this.#giveUp(null);
      return;
    }
    const is_resolving = this.#is_resolving;
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

/** What is not UTF-8 becomes U+FFFD, and so does U+0000, which no text of PostgreSQL can hold. */
function textOf(bytes: Buffer): string {
  return bytes.toString('utf8').replaceAll('\0', '\uFFFD');
}

/** Whether a response is over with its headers. */
function isEmpty(status: number, headers: ResponseHeaders): boolean {
  const length = headers['content-length'];
  if (headers['transfer-encoding'] !== undefined) return false;
  return length === '0' || (status === NO_CONTENT && length === undefined);
}
