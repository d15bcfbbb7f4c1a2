import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { sendHead } from '../../base/http/send-head.ts';
import type { DaemonClient } from '../../client/daemon-client.ts';
import { SandboxdError } from '../../client/error.ts';
import { ApiError, errorBody } from '../../contract/errors.ts';
import type { ServerLink } from '../api/server-link.ts';
import { Failure } from '../failure.ts';

/** What of a request reaches the daemon, whose token is added here. */
const REQUEST_HEADERS = [
  'accept',
  'content-length',
  'content-type',
  'if-match',
  'if-none-match',
  'last-event-id',
  'range',
];
const ANSWER_HEADERS = [
  'accept-ranges',
  'content-length',
  'content-range',
  'etag',
  'last-modified',
  'retry-after',
  'x-output-offset',
];
const TYPES = /^(application\/(json|octet-stream|x-tar|gzip)|text\/event-stream)(; charset=utf-8)?$/;
/** Nothing of a sandbox runs as a page. */
const GUARDS = {
  'content-security-policy': "sandbox; default-src 'none'",
  'x-content-type-options': 'nosniff',
};
const BAD_GATEWAY = 502;

/** Whether the daemon answers. */
export async function answersDaemon(daemon: DaemonClient): Promise<boolean> {
  return daemon.GET('/api/v1/sandbox').then(
    () => true,
    () => false,
  );
}

/** Passes a request on, and streams the answer back. `path` is below `/api/v1`, with its query. */
export async function passRequest(
  link: ServerLink,
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const ending = new AbortController();
  response.once('close', () => ending.abort());
  const has_body = request.method !== 'GET' && request.method !== 'HEAD';
  let answer: IncomingMessage;
  try {
    answer = await link.ask(request.method ?? 'GET', path, {
      headers: picked(request, REQUEST_HEADERS),
      ...(has_body ? { body: request } : {}),
      timeout_ms: 0,
      signal: ending.signal,
    });
  } catch (error) {
    if (response.destroyed) return;
    const is_told = error instanceof Failure || error instanceof SandboxdError;
    refuse(response, is_told ? error.message : 'The daemon does not answer.');
    return;
  }
  const type = answer.headers['content-type'] ?? '';
  const headers = {
    ...picked(answer, ANSWER_HEADERS),
    ...(answer.statusCode === 204
      ? {}
      : { 'content-type': TYPES.test(type) ? type : 'application/octet-stream' }),
    ...GUARDS,
  };
  try {
    sendHead(response, answer.statusCode ?? BAD_GATEWAY, Object.entries(headers) as [string, string][]);
  } catch {
    answer.destroy();
    refuse(response, 'The answer of the daemon cannot be passed on.');
    return;
  }
  await pipeline(answer, response).catch(() => response.destroy());
}

function refuse(response: ServerResponse, message: string): void {
  const body = JSON.stringify(errorBody(new ApiError('bad_gateway', message)));
  response.writeHead(BAD_GATEWAY, { 'content-type': 'application/json', ...GUARDS }).end(body);
}

/** Passes a WebSocket on, message by message. */
export async function passSocket(
  link: ServerLink,
  path: string,
  { request, socket, head }: { request: IncomingMessage; socket: Duplex; head: Buffer },
): Promise<void> {
  try {
    const [{ WebSocketServer }, far] = await Promise.all([import('ws'), link.open(path)]);
    const server = new WebSocketServer({ noServer: true, perMessageDeflate: false });
    server.handleUpgrade(request, socket, head, (near) => {
      const close = (code: number) => (code >= 1000 && code < 1004 ? code : undefined);
      near.on('message', (data, is_binary) => far.send(data, { binary: is_binary }));
      far.on('message', (data, is_binary) => near.send(data, { binary: is_binary }));
      near.on('close', () => far.close());
      far.on('close', (code) => near.close(close(code)));
      near.on('error', () => far.terminate());
      far.on('error', () => near.terminate());
      far.resume();
    });
  } catch {
    socket.destroy();
  }
}

function picked({ headers }: IncomingMessage, names: readonly string[]): OutgoingHttpHeaders {
  return Object.fromEntries(
    names.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])),
  );
}
