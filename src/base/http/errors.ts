import { type IncomingHttpHeaders, STATUS_CODES } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError, type ErrorCode, errorBody } from '../../contract/errors.ts';
import { kernelRandom } from '../entropy.ts';
import type { Log } from '../log.ts';
import { traceOf } from './trace-context.ts';

/** Characters of an unknown path that its answer repeats. */
const SHOWN_PATH_MAX = 200;

/** The catalogue's code for each of fastify's errors. */
const CODES: Record<string, ErrorCode> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_BAD_URL: 'invalid_request',
  FST_ERR_MAX_PARAM_LENGTH: 'invalid_request',
  FST_ERR_VALIDATION: 'invalid_request',
  FST_ERR_ROUTE_MISSING_CONTENT_TYPE: 'invalid_request',
};

/** Answers a request with an error of the catalogue. Any other error is logged and answered as `internal_error`. */
export function answerError(
  log: Log,
  error: Error & { code?: string },
  request: FastifyRequest,
  reply: FastifyReply,
) {
  const known = error instanceof ApiError ? error : toCatalogue(error, request);
  if (known.code === 'internal_error') logFailure(log, error, request);
  return reply.code(known.status).headers(retryHeaders(known)).send(errorBody(known));
}

/** An answer without its common headers. */
export interface PlainAnswer {
  status: number;
  text: string;
  headers: Record<string, string>;
}

/** What the log says of a request that failed. */
interface FailedRequest {
  id: string;
  headers: IncomingHttpHeaders;
}

/** The answer of a route that works without an application; errors as in `answerError`. */
export function errorAnswer(log: Log, error: Error, request: FailedRequest): PlainAnswer {
  const known = error instanceof ApiError ? error : new ApiError('internal_error');
  if (known.code === 'internal_error') logFailure(log, error, request);
  return { status: known.status, text: JSON.stringify(errorBody(known)), headers: retryHeaders(known) };
}

function logFailure(log: Log, error: Error, { id, headers }: FailedRequest): void {
  const { message, stack } = error;
  log.error({ request_id: id, ...traceOf(headers), reason: message, stack }, 'a request failed');
}

function retryHeaders({ details }: ApiError): Record<string, string> {
  const retry_after_s = (details as { retry_after_s?: number } | undefined)?.retry_after_s;
  return retry_after_s === undefined ? {} : { 'retry-after': String(retry_after_s) };
}

function toCatalogue(error: Error & { code?: string }, { raw }: FastifyRequest): ApiError {
  // The client has disconnected; nobody reads this.
  if (error.code === 'ECONNRESET' && raw.destroyed && !raw.complete) {
    return new ApiError('invalid_request', 'The request was cut off.');
  }
  const code = CODES[error.code ?? ''];
  if (code === 'invalid_request') return new ApiError(code, error.message);
  return code ? new ApiError(code) : new ApiError('internal_error');
}

/** An answer written without an application; the connection ends after it. */
export interface BareAnswer {
  status: number;
  headers: Record<string, string>;
  text: string;
}

/** Builds an answer in the contract's envelope. `status` may be more specific than the error's own status. */
export function bareAnswer(status: number, error: ApiError, allow: string[] = []): BareAnswer {
  const text = JSON.stringify(errorBody(error));
  const headers = {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(Buffer.byteLength(text)),
    'X-Request-Id': kernelRandom(6).toString('hex'),
    ...(allow.length > 0 ? { Allow: allow.join(', ') } : {}),
    Connection: 'close',
  };
  return { status, headers, text };
}

/** Formats an answer as an HTTP/1.1 response. */
export function bareResponse({ status, headers, text }: BareAnswer): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${text}`;
}

/** Returns the answer to a request that Node's parser rejects, by the parser's error code. */
export function clientErrorAnswer(code: string): BareAnswer {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return bareAnswer(408, new ApiError('timeout', 'The request did not arrive in time.'));
    case 'HPE_HEADER_OVERFLOW':
      return bareAnswer(431, new ApiError('invalid_request', 'The headers are longer than 16 KiB.'));
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return bareAnswer(413, new ApiError('payload_too_large', 'The chunk extensions are too long.'));
    default:
      return bareAnswer(400, new ApiError('invalid_request', 'The request is not valid HTTP.'));
  }
}

/** Returns the answer to an unknown method: 405 with the methods in `allow`, or 404 if `allow` is empty. */
export function unknownMethodAnswer(method: string, target: string, allow: string[]): BareAnswer {
  if (allow.length === 0) return bareAnswer(404, noRoute(method, target));
  return bareAnswer(405, new ApiError('method_not_allowed'), allow);
}

/** The error for a route that does not exist. The query stays out of its message: it may hold a secret. */
export function noRoute(method: string, target = ''): ApiError {
  const [path = ''] = target.split(/[?#]/);
  const shown = path.length > SHOWN_PATH_MAX ? `${path.slice(0, SHOWN_PATH_MAX)}…` : path;
  return new ApiError('not_found', `No such route: ${method} ${shown}`);
}
