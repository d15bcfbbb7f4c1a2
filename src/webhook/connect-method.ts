import type { AttemptError } from '../contract/words.ts';
import { ConnectError } from './attempt-error.ts';
import { oneLine } from './error-detail.ts';

const DEFAULT_PORTS: Record<string, string> = { 'http:': '80', 'https:': '443' };

/** The target of a CONNECT request, `host:port`; an IPv6 address is in brackets. Source: RFC 9110, section 9.3.6. */
export function authorityOf({
  protocol,
  hostname,
  port,
}: Pick<URL, 'protocol' | 'hostname' | 'port'>): string {
  const host = hostname.includes(':') && !hostname.startsWith('[') ? `[${hostname}]` : hostname;
  return `${host}:${port || DEFAULT_PORTS[protocol]}`;
}

/** Which type of proxy error each attempt error is. Source: RFC 9209, section 2.3. */
const ERROR_TYPES: Record<AttemptError, string> = {
  blocked: 'destination_ip_prohibited',
  dns: 'dns_error',
  connect: 'connection_refused',
  timeout: 'connection_timeout',
  reset: 'connection_terminated',
  tls: 'tls_protocol_error',
  protocol: 'http_protocol_error',
};

/** The `Proxy-Status` header that says why a CONNECT request failed; what is not ASCII in it is percent-encoded. */
export function proxyStatusOf({ attempt_error, detail }: ConnectError): string {
  const details = encodeURIComponent(detail.toWellFormed());
  return `sandbox-manager; error=${ERROR_TYPES[attempt_error]}; details="${details}"`;
}

const PROXY_STATUS = /^sandbox-manager; error=(\w+); details="([^"]*)"$/;

/** The error that a `Proxy-Status` header tells; `connect` if it tells none. */
export function connectErrorOf(proxy_status: string | string[] | undefined): ConnectError {
  const [, type, details = ''] = PROXY_STATUS.exec(String(proxy_status)) ?? [];
  const errors = Object.keys(ERROR_TYPES) as AttemptError[];
  const error = errors.find((each) => ERROR_TYPES[each] === type);
  if (error === undefined) return new ConnectError('connect', 'the manager could not connect');
  return new ConnectError(error, oneLine(decoded(details)));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
