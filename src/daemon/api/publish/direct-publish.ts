import type { IncomingMessage, ServerResponse } from 'node:http';
import { bodies } from '../../../base/http/bodies.ts';
import { errorAnswer, type PlainAnswer } from '../../../base/http/errors.ts';
import { hostLines } from '../../../base/http/host-lines.ts';
import { idempotencyKeyOf } from '../../../base/http/idempotency-key.ts';
import type { Router } from '../../../base/http/listener.ts';
import { requestIds } from '../../../base/http/request-ids.ts';
import type { RequestMetrics } from '../../../base/http/request-metrics.ts';
import { traceparentOf } from '../../../base/http/trace-context.ts';
import type { Log } from '../../../base/log.ts';
import { BODY_MAX_BYTES, PUBLISH_PATH } from '../../../contract/defaults.ts';
import { ApiError } from '../../../contract/errors.ts';
import type { Listeners } from '../../listeners.ts';
import type { Publisher } from '../../publisher.ts';
import type { StartGate } from '../../start-gate.ts';
import type { Guard } from '../guard.ts';
import { payloadText } from './payload.ts';

const LENGTH = /^\d{1,7}$/;
/** All headers that a plain publish may have: any other one may mean something to the application. */
const PLAIN = new Set([
  'host',
  'connection',
  'keep-alive',
  'user-agent',
  'content-type',
  'content-length',
  'accept',
  'accept-encoding',
  'accept-language',
  'cache-control',
  'pragma',
  'sec-fetch-mode',
  'authorization',
  'idempotency-key',
  'traceparent',
  'tracestate',
]);

/** The slice of the daemon's core that publishing uses. */
export interface PublishCore {
  /** Open once the daemon has started. */
  readonly gate: Pick<StartGate, 'is_open'>;
  /** Throws `outbox_unavailable` until the daemon has started. */
  readonly publisher: Pick<Publisher, 'publish'>;
}

/** What `DirectPublish` works with. */
export interface DirectPublishParts {
  /** Answers everything else. */
  app: Router;
  core: PublishCore;
  guard: Pick<Guard, 'acceptsHost'>;
  listeners: Pick<Listeners, 'isControl' | 'connections'>;
  requests: Pick<RequestMetrics, 'answered'>;
  log: Log;
}

/**
 * Answers publishes without the application's detours, which take as long as the publish itself. Only requests of the
 * plainest form, as `curl` and HTTP libraries send them; the route of the application answers all others alike.
 * Source: contract section 4, POST `/webhook/publish`.
 */
export class DirectPublish implements Router {
  readonly #parts: DirectPublishParts;
  readonly #nextId = requestIds();

  constructor(parts: DirectPublishParts) {
    this.#parts = parts;
  }

  /** See `Router`. */
  readonly methodsOf = (target: string): string[] | Promise<string[]> => this.#parts.app.methodsOf(target);

  /** Answers a request. */
  readonly routing = (request: IncomingMessage, response: ServerResponse): void => {
    if (this.#isPlain(request)) this.#read(request, response);
    else this.#parts.app.routing(request, response);
  };

  #isPlain(request: IncomingMessage): boolean {
    if (request.method !== 'POST' || request.url !== PUBLISH_PATH || request.httpVersion !== '1.1')
      return false;
    const { core, guard, listeners } = this.#parts;
    const { headers, rawHeaders } = request;
    const { host, 'content-length': length = '' } = headers;
    if (headers['content-type'] !== 'application/json') return false;
    if (!LENGTH.test(length) || Number(length) > BODY_MAX_BYTES || Number(length) === 0) return false;
    for (const name in headers) if (!PLAIN.has(name)) return false;
    // Node drops a second one.
    if (!guard.acceptsHost(host) || hostLines(rawHeaders) !== 1) return false;
    return core.gate.is_open && !listeners.isControl(request.socket);
  }

  #read(request: IncomingMessage, response: ServerResponse): void {
    const started_ms = performance.now();
    bodies.read(request, (error, body) => {
      // The client has disconnected; nobody reads an answer.
      if (error && !(error instanceof ApiError)) return;
      if (error) response.shouldKeepAlive = false;
      void this.#answer(request, response, error ?? body, started_ms);
    });
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    body: Buffer | ApiError,
    started_ms: number,
  ): Promise<void> {
    const { listeners, requests } = this.#parts;
    const { connections } = listeners;
    const { socket } = request;
    connections.requestComplete(socket);
    const id = this.#nextId();
    const { status, text, headers } = await this.#published(request, body, id);
    response.once('close', () => {
      connections.answered(socket);
      requests.answered(PUBLISH_PATH, status, performance.now() - started_ms);
    });
    response.writeHead(status, {
      'content-type': 'application/json; charset=utf-8',
      'x-request-id': id,
      'content-length': Buffer.byteLength(text),
      ...headers,
    });
    response.end(text);
  }

  async #published(request: IncomingMessage, body: Buffer | ApiError, id: string): Promise<PlainAnswer> {
    try {
      if (body instanceof ApiError) throw body;
      const payload = payloadText(body);
      const key = idempotencyKeyOf(request.headers['idempotency-key']);
      const traceparent = traceparentOf(request.headers.traceparent);
      const receipt = await this.#parts.core.publisher.publish(payload, key, traceparent);
      return { status: 202, text: JSON.stringify({ success: true, data: receipt }), headers: {} };
    } catch (error) {
      return errorAnswer(this.#parts.log, error as Error, { id, headers: request.headers });
    }
  }
}
