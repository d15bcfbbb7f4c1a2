import type { FastifyReply, FastifyRequest } from 'fastify';
import { CatalogueError, type ErrorCode, errorBody } from '../contract/errors.ts';
import { kernelRandom } from './entropy.ts';
import type { Log } from './log.ts';

/** What fastify and Node say, in the words of the catalogue. */
const CODES: Record<string, ErrorCode> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'payload_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'invalid_request',
  FST_ERR_BAD_URL: 'invalid_request',
  FST_ERR_MAX_PARAM_LENGTH: 'invalid_request',
  FST_ERR_VALIDATION: 'invalid_request',
};

/** Answers a request that was read with an error of the catalogue; what is none is logged and told as internal. */
export function answerError(
  log: Log,
  error: Error & { code?: string },
  request: FastifyRequest,
  reply: FastifyReply,
) {
  const known = error instanceof CatalogueError ? error : toCatalogue(error);
  if (known.code === 'internal_error') {
    log.error({ request_id: request.id, reason: error.message, stack: error.stack }, 'a request failed');
  }
  const retry_after_s = (known.details as { retry_after_s?: number } | undefined)?.retry_after_s;
  if (retry_after_s !== undefined) reply.header('retry-after', String(retry_after_s));
  return reply.code(known.status).send(errorBody(known));
}

function toCatalogue(error: Error & { code?: string }): CatalogueError {
  const code = CODES[error.code ?? ''];
  if (code === 'invalid_request') return new CatalogueError(code, error.message);
  return code ? new CatalogueError(code) : new CatalogueError('internal_error');
}

/** An answer without an application. HTTP's own status stays where the catalogue has none as exact. */
export interface BareAnswer {
  status: number;
  reason: string;
  error: CatalogueError;
  allow?: string[];
}

const NOT_HTTP: BareAnswer = {
  status: 400,
  reason: 'Bad Request',
  error: new CatalogueError('invalid_request', 'The request is not valid HTTP.'),
};

const CLIENT_ERRORS: Record<string, BareAnswer> = {
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    reason: 'Request Timeout',
    error: new CatalogueError('timeout', 'The request did not arrive in time.'),
  },
  HPE_HEADER_OVERFLOW: {
    status: 431,
    reason: 'Request Header Fields Too Large',
    error: new CatalogueError('invalid_request', 'The request line and the headers are longer than 16 KiB.'),
  },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: {
    status: 413,
    reason: 'Payload Too Large',
    error: new CatalogueError('payload_too_large', 'The chunk extensions are too long.'),
  },
};

/** What is answered where Node's parser gives up, by its code. */
export function clientErrorAnswer(code: string): BareAnswer {
  return Object.hasOwn(CLIENT_ERRORS, code) ? (CLIENT_ERRORS[code] as BareAnswer) : NOT_HTTP;
}

/** What is answered to a method that nobody knows. */
export function unknownMethodAnswer(allow: string[]): BareAnswer {
  return allow.length === 0
    ? { status: 404, reason: 'Not Found', error: new CatalogueError('not_found', NO_PATH) }
    : { status: 405, reason: 'Method Not Allowed', error: new CatalogueError('method_not_allowed'), allow };
}

export const NO_PATH = 'There is no such path.';

/** The bytes of an answer, after which the connection ends. */
export function bareResponse({ status, reason, error, allow }: BareAnswer): string {
  const request_id = kernelRandom(6).toString('hex');
  const text = JSON.stringify(errorBody(error));
  return (
    `HTTP/1.1 ${status} ${reason}\r\nContent-Type: application/json; charset=utf-8\r\n` +
    `Content-Length: ${Buffer.byteLength(text)}\r\nX-Request-Id: ${request_id}\r\n` +
    `${allow ? `Allow: ${allow.join(', ')}\r\n` : ''}Connection: close\r\n\r\n${text}`
  );
}
