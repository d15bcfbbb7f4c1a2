import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { HOP_BY_HOP } from '../../../base/http/hop-by-hop.ts';
import { isUpgrade } from '../../../base/http/listener.ts';
import { upgradeHead } from '../daemon-answer.ts';
import type { MessageHeaders } from '../exchange.ts';

/** Where a port is at the manager, and what its server can call itself. */
export interface PortPlace {
  port: number;
  /** The path of the port at the manager, without a slash at the end. */
  prefix: string;
  /** The `Host` of the caller's request. */
  host: string;
}

/**
 * What a server in a sandbox is not told: the caller's token, and the cookies that a browser has for the manager's host,
 * whosever they are. Framing and expectations are those of this side.
 */
const NOT_SENT = setOf(
  'authorization cookie host content-length expect http2-settings forwarded x-real-ip x-control-scope',
);
const NOT_SENT_BEGINNING = 'x-forwarded-';

/** What would hold for the whole host of the manager, or for other pages of it, or read its answers elsewhere. */
const OF_THE_HOST = setOf(
  'set-cookie set-cookie2 clear-site-data strict-transport-security public-key-pins expect-ct alt-svc alt-used',
  'report-to reporting-endpoints nel accept-ch critical-ch origin-trial service-worker-allowed origin-agent-cluster',
  'use-as-dictionary speculation-rules timing-allow-origin set-login activate-storage-access',
  'secure-session-registration secure-session-challenge sec-session-registration sec-session-challenge',
);
/** A password prompt, or another place to go, in the manager's name; and what the manager itself says. */
const OF_THE_MANAGER = setOf(
  'www-authenticate authentication-info refresh location content-location x-request-id ratelimit ratelimit-policy',
);
const NOT_PASSED_BEGINNINGS = ['access-control-', 'x-ratelimit-', 'proxy-'];

/** Pages of a sandbox run in an origin of their own, never in the manager's. */
const PAGE_POLICY = 'sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads';

const NO_CONTENT = 204;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const WEBSOCKET_EXTRAS: [name: string, header: string][] = [
  ['Sec-WebSocket-Protocol', 'sec-websocket-protocol'],
  ['Sec-WebSocket-Extensions', 'sec-websocket-extensions'],
];

/** The headers of a request to a port. Source: contract section 7, "Ports". */
export function portRequestHeaders(
  request: FastifyRequest,
  { port, prefix, host }: PortPlace,
): MessageHeaders {
  const { headers } = request;
  const isOfConnection = connectionHeaders(headers);
  const kept = Object.entries(headers).flatMap(([name, value]): [string, string][] => {
    // Many servers read an underscore as a hyphen: what the manager says cannot be said in its place.
    const read_as = name.replaceAll('_', '-');
    const is_taken_out =
      NOT_SENT.has(read_as) || read_as.startsWith(NOT_SENT_BEGINNING) || isOfConnection(name);
    const is_sendable = typeof value === 'string' && VALUE.test(value);
    return is_taken_out || !is_sendable ? [] : [[name, value]];
  });
  return {
    ...Object.fromEntries(kept),
    ...(isUpgrade(request) ? { connection: 'Upgrade', upgrade: 'websocket' } : {}),
    host: `localhost:${port}`,
    'x-forwarded-for': request.raw.socket.remoteAddress ?? '',
    'x-forwarded-host': host,
    'x-forwarded-prefix': prefix,
    'x-forwarded-proto': 'http',
  };
}

/** The headers of a port's answer that reach the caller. `path` is the request's, at the server. */
export function portAnswerHeaders(
  { headers, statusCode }: IncomingMessage,
  path: string,
  place: PortPlace,
): MessageHeaders {
  const isOfConnection = connectionHeaders(headers);
  // With 204, a proxy in between could take the next answer, somebody else's, for the body. Source: RFC 9110, section 8.6.
  const has_length = headers['transfer-encoding'] === undefined && statusCode !== NO_CONTENT;
  const kept = Object.entries(headers).flatMap(([name, value]): [string, string][] => {
    const is_taken_out = OF_THE_HOST.has(name) || OF_THE_MANAGER.has(name) || isOfConnection(name);
    if (typeof value !== 'string' || !VALUE.test(value) || is_taken_out) return [];
    if (NOT_PASSED_BEGINNINGS.some((beginning) => name.startsWith(beginning))) return [];
    return name === 'content-length' && !has_length ? [] : [[name, value]];
  });
  const { location, 'content-security-policy': own } = headers;
  const moved = location === undefined ? null : ownLocation(location, path, place);
  return {
    ...Object.fromEntries(kept),
    ...(moved === null ? {} : { location: moved }),
    // Every policy holds: one more never allows anything.
    'content-security-policy': typeof own === 'string' && VALUE.test(own) ? [own, PAGE_POLICY] : PAGE_POLICY,
    'x-content-type-options': 'nosniff',
  };
}

/** The response head that opens a WebSocket to a port, with what the two ends have agreed on; null if it opens none. */
export function portUpgradeHead(head: IncomingMessage): string | null {
  const lines = upgradeHead(head);
  if (lines === null) return null;
  const extras = WEBSOCKET_EXTRAS.flatMap(([name, header]) => {
    const value = head.headers[header];
    return typeof value === 'string' && VALUE.test(value) ? [`${name}: ${value}\r\n`] : [];
  });
  return lines.replace(/\r\n$/, `${extras.join('')}\r\n`);
}

/** Whether a header is for one connection alone: by its name, or because `Connection` names it. */
function connectionHeaders({ connection = '' }: IncomingHttpHeaders): (name: string) => boolean {
  const named = new Set(connection.split(',').map((name) => name.trim().toLowerCase()));
  return (name) => HOP_BY_HOP.has(name) || named.has(name);
}

function setOf(...lines: string[]): Set<string> {
  return new Set(lines.flatMap((line) => line.split(' ')));
}

/**
 * A server's `Location`, as a path below that of its port; null if it leads anywhere else. A client that follows it sends
 * the token of its user along, to whatever path of the manager a sandbox names. `path` is the request's own, at the server.
 */
export function ownLocation(
  location: string,
  path: string,
  { port, prefix, host }: PortPlace,
): string | null {
  const base = `http://localhost:${port}`;
  let url: URL;
  try {
    url = new URL(location, new URL(path, base));
  } catch {
    return null;
  }
  const is_web = url.protocol === 'http:' || url.protocol === 'https:';
  if (!is_web || url.username !== '' || url.password !== '') return null;
  const { pathname, search, hash } = url;
  const is_prefixed = pathname.startsWith(`${prefix}/`);
  // Servers that heed X-Forwarded-Prefix or X-Forwarded-Host have found it themselves.
  if (is_prefixed && (isOwnHost(url.host, port) || url.host === host)) return `${pathname}${search}${hash}`;
  return isOwnHost(url.host, port) ? `${prefix}${pathname}${search}${hash}` : null;
}

function isOwnHost(host: string, port: number): boolean {
  // The URL parser leaves a port 80 out.
  const suffix = port === 80 ? '' : `:${port}`;
  return [`localhost${suffix}`, `127.0.0.1${suffix}`, `[::1]${suffix}`].includes(host);
}
