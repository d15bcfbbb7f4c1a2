import { STATUS_CODES } from 'node:http';
import { isIPv6 } from 'node:net';
import { systemErrorWords } from '../base/linux/errno.ts';
import { ERROR_DETAIL_MAX_CHARACTERS } from '../contract/defaults.ts';
import type { AttemptError } from '../contract/words.ts';

/** Where an attempt leads: the host and the port of its URL. */
export interface Target {
  hostname: string;
  port: number;
}

/** An error of the platform or the HTTP library, with what it may say beside its message. */
export interface TransportError extends Error {
  code?: string;
  address?: string;
  port?: number;
  /** OpenSSL's own words. */
  reason?: string;
  /** The connection that has ended, where the library knows it. */
  socket?: { remoteAddress?: string; remotePort?: number };
}

/** What would break a line, or do something on a terminal. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu;

/** What Node adds to the reason that TLS gives: advice for a developer. */
const NODE_HINT = /; if the root CA is installed locally.*/;

/** Text of a receiver or a library as one bounded line without control characters. Pure. */
export function oneLine(text: string): string {
  const line = text.toWellFormed().replace(UNPRINTABLE, ' ').trim();
  const characters = [...line];
  if (characters.length <= ERROR_DETAIL_MAX_CHARACTERS) return line;
  return `${characters.slice(0, ERROR_DETAIL_MAX_CHARACTERS - 1).join('')}…`;
}

/**
 * What a status says, such as `503 Service Unavailable`; null for a success. `text` is the receiver's own, and is not
 * repeated where it holds the query of the URL, which may be a secret. Pure. Source: contract section 4, `error_detail`.
 */
export function statusDetail(status: number, text: string | undefined, query: string): string | null {
  if (status >= 200 && status < 300) return null;
  const is_usable = text !== undefined && text.trim() !== '' && !(query !== '' && text.includes(query));
  return oneLine(`${status} ${is_usable ? text : (STATUS_CODES[status] ?? '')}`);
}

/**
 * What went wrong in an attempt without a status: one line a person can act on, with the errno, address and port, or the
 * reason that TLS gives. It holds nothing of the URL but host and port. Pure. Source: contract section 4, `error_detail`.
 */
export function errorDetail(kind: AttemptError, error: TransportError, target: Target): string {
  const each = error instanceof AggregateError && error.errors.length > 0 ? error.errors : [error];
  return oneLine([...new Set(each.map((one: TransportError) => detailOf(kind, one, target)))].join('; '));
}

/** What took too long in an attempt that was given up. Pure. */
export function timeoutDetail(
  stage: 'resolving' | 'connecting' | 'answering',
  ms: number,
  target: Target,
): string {
  const within = `within ${ms / 1_000} s`;
  if (stage === 'resolving') return oneLine(`the name ${target.hostname} was not resolved ${within}`);
  if (stage === 'connecting') return oneLine(`no connection to ${placeOf(target)} ${within}`);
  return oneLine(`${placeOf(target)} did not answer ${within}`);
}

/** Why an address is not dialled. Pure. */
export function blockedDetail({ hostname }: Pick<Target, 'hostname'>): string {
  return oneLine(`${hostname} leads only to addresses that webhooks may not reach (--allow-webhook-cidr)`);
}

function detailOf(kind: AttemptError, error: TransportError, target: Target): string {
  const { code = '', message } = error;
  if (kind === 'blocked') return blockedDetail(target);
  if (kind === 'dns')
    return `${systemErrorWords(code) ?? 'the name server failed'} (${code} ${target.hostname})`;
  if (kind === 'tls') return `${error.reason ?? message.replace(NODE_HINT, '')} (${code} ${placeOf(target)})`;
  if (kind === 'protocol') return `the answer is not valid HTTP (${parserReason(error)})`;
  const { remoteAddress, remotePort } = error.socket ?? {};
  const place = placeOf({
    hostname: error.address ?? remoteAddress ?? target.hostname,
    port: error.port ?? remotePort ?? target.port,
  });
  const words = systemErrorWords(code);
  return words === null ? `the receiver closed the connection (${place})` : `${words} (${code} ${place})`;
}

/** The HTTP parser's own reason, which repeats nothing that was received; of any other error only the name. */
function parserReason({ name, code, message }: TransportError): string {
  if (name === 'HTTPParserError') return /\((.+)\)$/.exec(message)?.[1] ?? message;
  return code === 'UND_ERR_SOCKET' ? message : (code ?? name);
}

function placeOf({ hostname, port }: Target): string {
  return isIPv6(hostname) ? `[${hostname}]:${port}` : `${hostname}:${port}`;
}
