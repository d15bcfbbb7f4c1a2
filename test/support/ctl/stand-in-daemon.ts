import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { DeliveryDetail, DeliveryView } from '../../../src/contract/deliveries.ts';
import type { ErrorCode } from '../../../src/contract/errors.ts';

export interface Received {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  body: string;
}

type Route = (request: Received, response: ServerResponse) => void;

/** A server that answers in the shapes of the contract, section 4, what a test tells it to. */
export class StandInDaemon {
  readonly received: Received[] = [];
  readonly #routes = new Map<string, Route>();
  readonly #server: Server = createServer((request, response) => void this.#answer(request, response));

  /** Listens on a port of the loopback interface, or on a Unix socket; resolves with the value for `--url`. */
  async start(socket_path?: string): Promise<string> {
    await new Promise<void>((resolve) => {
      if (socket_path) this.#server.listen(socket_path, resolve);
      else this.#server.listen(0, '127.0.0.1', resolve);
    });
    if (socket_path) return `unix:${socket_path}`;
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  /** Ends every connection, as a daemon that dies does. */
  dropConnections(): void {
    this.#server.closeAllConnections();
  }

  /** Answers `METHOD /path` (below `/api/v1`, without its query) like this from now on. */
  on(route: string, answer: Route): void {
    this.#routes.set(route, answer);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = request;
    const received = { method, url, headers, body: (await buffer(request)).toString() };
    this.received.push(received);
    const path = url.replace('/api/v1', '').split('?')[0];
    const route = this.#routes.get(`${method} ${path}`);
    if (route) route(received, response);
    else refuse(response, 404, 'not_found', 'Not found.');
  }
}

export function succeed(response: ServerResponse, status: number, data: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ success: true, data }));
}

export function refuse(
  response: ServerResponse,
  status: number,
  code: ErrorCode,
  message: string,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'r1', ...headers });
  response.end(JSON.stringify({ success: false, error: { code, message, details: null } }));
}

export function delivery(sequence: number, changes: Partial<DeliveryView> = {}): DeliveryView {
  return {
    event_id: `evt_019a2b3c-4d5e-7f60-8123-${String(sequence).padStart(12, '0')}`,
    event_type: 'agent.event',
    sequence,
    state: 'delivered',
    created_at: '2026-01-01T00:00:00.000Z',
    finished_at: '2026-01-01T00:00:01.000Z',
    next_attempt_at: null,
    attempt_count: 2,
    last_status: 204,
    last_error: null,
    last_error_detail: null,
    ...changes,
  };
}

/** The body of the event of that sequence, as delivered. */
export function eventBody(sequence: number, payload = `{"step":${sequence}}`): string {
  return (
    `{"event_id":"${delivery(sequence).event_id}","event_type":"agent.event","timestamp":"2026-01-01T00:00:00.000Z",` +
    `"sandbox_id":"sbx_1","team_id":"team_1","sequence":${sequence},"payload":${payload}}`
  );
}

export function deliveryDetail(sequence: number, changes: Partial<DeliveryDetail> = {}): DeliveryDetail {
  return {
    ...delivery(sequence),
    body: eventBody(sequence),
    headers: { 'Content-Type': 'application/json', 'ce-id': delivery(sequence).event_id },
    attempts: [
      {
        attempt: 1,
        started_at: '2026-01-01T00:00:00.000Z',
        duration_ms: 12,
        status: null,
        error: 'connect',
        error_detail: 'connection refused (ECONNREFUSED 127.0.0.1:9)',
        next_attempt_at: '2026-01-01T00:00:00.500Z',
        response_body: null,
      },
      {
        attempt: 2,
        started_at: '2026-01-01T00:00:00.500Z',
        duration_ms: 1_234,
        status: 204,
        error: null,
        next_attempt_at: null,
        error_detail: null,
        response_body: 'thank you\n\u001b[31mvery much',
      },
    ],
    ...changes,
  };
}
