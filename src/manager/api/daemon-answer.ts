import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

/** What a daemon's answer may say of its body, beside the type and the length. Nothing else of it reaches a caller. */
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

/** What daemons answer with; a browser is given anything else as bytes. */
const TYPES = /^(application\/(json|octet-stream|x-ndjson|x-tar|gzip)|text\/event-stream)(; charset=utf-8)?$/;
const BYTES = 'application/octet-stream';

/** A page that a sandbox made must not be one of the manager's own. */
const GUARDS = {
  'content-security-policy': "sandbox; default-src 'none'",
  'x-content-type-options': 'nosniff',
};

/** The headers for a caller, made from those of a daemon that may be anything: none but the known, none malformed. */
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

/** Whether an answer can be given to a caller at all: a final status of HTTP. */
export function isFinal({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode <= 599;
}

/** The head that begins a WebSocket; null where the daemon's does not. Source: RFC 6455, section 4.2.2. */
export function upgradeHead({ statusCode, headers }: IncomingMessage): string | null {
  const accept = headers['sec-websocket-accept'] ?? '';
  if (statusCode !== 101 || !/^[A-Za-z0-9+/]{27}=$/.test(accept)) return null;
  return (
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
    `Sec-WebSocket-Accept: ${accept}\r\n\r\n`
  );
}
