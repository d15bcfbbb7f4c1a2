import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { SOCKET_PROTOCOL } from '../../contract/socket-token.ts';

/** The headers of a daemon's answer that reach a caller, in addition to type and length. */
const HEADERS = [
  'accept-ranges',
  'allow',
  'cache-control',
  'content-range',
  'etag',
  'last-modified',
  'retry-after',
  'x-output-offset',
];
const VALUE = /^[\x20-\x7e]{0,256}$/;

/** The types that daemons answer with; any other is sent as bytes. */
const TYPES = /^(application\/(json|octet-stream|x-ndjson|x-tar|gzip)|text\/event-stream)(; charset=utf-8)?$/;
const BYTES = 'application/octet-stream';

/** Content from a sandbox must not run as a page of the manager. */
const GUARDS = {
  'content-security-policy': "sandbox; default-src 'none'",
  'x-content-type-options': 'nosniff',
};

/** The headers for the caller: only known and well-formed ones of the daemon, which is not trusted. */
export function answerHeaders({ statusCode, headers }: IncomingMessage): Record<string, string> {
  const kept = HEADERS.flatMap((name): [string, string][] => {
    const value = headers[name];
    return typeof value === 'string' && VALUE.test(value) ? [[name, value]] : [];
  });
  return { ...Object.fromEntries(kept), ...bodyHeaders(statusCode ?? 0, headers), ...GUARDS };
}

function bodyHeaders(status: number, headers: IncomingHttpHeaders): Record<string, string> {
  if (status === 204 || status === 304) return {};
  const { 'content-type': type = '', 'content-length': length } = headers;
  const has_length =
    length !== undefined && /^\d{1,15}$/.test(length) && headers['transfer-encoding'] === undefined;
  return {
    'content-type': TYPES.test(type) ? type : BYTES,
    ...(has_length ? { 'content-length': length } : {}),
  };
}

/** Whether an answer has a final HTTP status, 200 to 599. */
export function isFinal({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode <= 599;
}

/**
 * The response head that opens a WebSocket, with the subprotocol of a caller that offered it; null if the daemon's answer
 * does not open one. Source: RFC 6455, section 4.2.2.
 */
export function upgradeHead(
  { statusCode, headers }: IncomingMessage,
  offers_protocol = false,
): string | null {
  const accept = headers['sec-websocket-accept'] ?? '';
  if (statusCode !== 101 || !/^[A-Za-z0-9+/]{27}=$/.test(accept)) return null;
  return (
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
    `Sec-WebSocket-Accept: ${accept}\r\n` +
    `${offers_protocol ? `Sec-WebSocket-Protocol: ${SOCKET_PROTOCOL}\r\n` : ''}\r\n`
  );
}
