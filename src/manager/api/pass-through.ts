import type { Duplex } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isUpgrade } from '../../base/http/listener.ts';
import { CONTROL_SCOPE_HEADER, type ControlScope } from '../../contract/control-socket.ts';
import { ApiError, invalidField } from '../../contract/errors.ts';
import { offersSocketProtocol } from '../../contract/socket-token.ts';
import { answerHeaders, upgradeHead } from './daemon-answer.ts';
import { exchange } from './exchange.ts';

/** The request headers that are forwarded; the framing of the body is set here. */
const FORWARDED = [
  'accept',
  'content-type',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'last-event-id',
  'range',
  'traceparent',
];
const FORWARDED_UPGRADE = ['sec-websocket-key', 'sec-websocket-version'];

/** Where a request to a daemon goes. `path` is built by the manager, never taken from the caller. */
interface DaemonRequest {
  /** A new connection to the daemon. Throws ApiError where there can be none. */
  connect(): Promise<Duplex>;
  path: string;
  scope: ControlScope;
}

/**
 * Passes a request to a sandbox's daemon, and streams the answer back. Throws `invalid_request` for a body with a method
 * that has none, and `unavailable` if the daemon does not answer with HTTP.
 */
export async function passThrough(
  request: FastifyRequest,
  reply: FastifyReply,
  { connect, path, scope }: DaemonRequest,
): Promise<void> {
  if (isUpgrade(request) && request.method !== 'GET')
    throw invalidField('Upgrade', 'is allowed with GET only');
  checkBody(request);
  const socket = await connect().catch((error) => {
    throw error instanceof ApiError ? error : noAnswer();
  });
  // The caller may have gone meanwhile.
  if (request.raw.socket.destroyed) socket.destroy();
  await exchange(request, reply, {
    connection: { createConnection: () => socket },
    path,
    is_duplex: false,
    headers: { ...forwarded(request), [CONTROL_SCOPE_HEADER]: scope },
    answerHeaders,
    upgradeHead: (head) => upgradeHead(head, offersSocketProtocol(request.headers['sec-websocket-protocol'])),
    noAnswer,
  });
}

/** Only these methods have a body: after the head of any other, its bytes would be read as another request. */
function checkBody({ method, headers }: FastifyRequest): void {
  if (method === 'POST' || method === 'PUT') return;
  const { 'transfer-encoding': encoding, 'content-length': length } = headers;
  if (encoding === undefined && (length === undefined || Number(length) === 0)) return;
  throw invalidField('body', `is not allowed with ${method}`);
}

function forwarded(request: FastifyRequest): Record<string, string> {
  const names = isUpgrade(request) ? [...FORWARDED, ...FORWARDED_UPGRADE] : FORWARDED;
  const kept = names.flatMap((name): [string, string][] => {
    const value = request.headers[name];
    return typeof value === 'string' ? [[name, value]] : [];
  });
  return {
    ...Object.fromEntries(kept),
    host: 'localhost',
    ...(isUpgrade(request) ? { connection: 'Upgrade', upgrade: 'websocket' } : {}),
  };
}

/** The daemon has gone, or does not speak HTTP. */
export function noAnswer(): ApiError {
  return new ApiError('unavailable', "The sandbox's daemon does not answer.", { retry_after_s: 1 });
}
