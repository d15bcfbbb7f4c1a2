import type { TSchema } from 'typebox';
import { ERROR_DETAILS } from '../../contract/error-details.ts';
import { ApiError, ERROR_CODES, type ErrorCode } from '../../contract/errors.ts';
import { EXAMPLES } from '../../contract/routes/examples.ts';
import type { Route } from '../../contract/routes/route.ts';
import { exampleOf } from './openapi-example.ts';

/** The headers of answers, as components of a document. */
export const ANSWER_HEADERS = {
  RequestId: header('the id of the request, as in the log'),
  RateLimitPolicy: header(
    'the limits that the request is charged to (IETF draft)',
    '"api_requests";q=100;w=1',
  ),
  RateLimit: header('what is left of them', '"api_requests";r=99;t=1'),
  RateLimitLimit: header('the limit of the exceeded quota', '100'),
  RateLimitRemaining: header('what is left of it', '0'),
  RetryAfter: header('after how many seconds to try again', '1'),
};

function header(description: string, example?: string): object {
  return { description, schema: { type: 'string' }, ...(example === undefined ? {} : { example }) };
}

const headerRef = (name: keyof typeof ANSWER_HEADERS) => ({ $ref: `#/components/headers/${name}` });
const schemaRef = (name: string) => ({ $ref: `#/components/schemas/${name}` });

const REQUEST_ID = { 'X-Request-Id': headerRef('RequestId') };
const CHARGED = { 'RateLimit-Policy': headerRef('RateLimitPolicy'), RateLimit: headerRef('RateLimit') };
const REFUSED = {
  'X-RateLimit-Limit': headerRef('RateLimitLimit'),
  'X-RateLimit-Remaining': headerRef('RateLimitRemaining'),
};
const RETRY = { 'Retry-After': headerRef('RetryAfter') };

/** The answers of an operation: its successes, the errors by their statuses, and `default` for any other error. */
export function answers(id: string, row: Route, codes: readonly ErrorCode[], is_charged: boolean): object {
  const common = { ...REQUEST_ID, ...(is_charged ? CHARGED : {}) };
  const own = Object.entries(row.answer_headers ?? {}).map(([name, what]) => [name, header(what)]);
  const headers = { ...common, ...Object.fromEntries(own) };
  const status = row.status ?? 200;
  const content = contentOf(id, row);
  const also = Object.entries(row.also ?? {}).map(([other, description]) => [
    other,
    { description, headers, ...(other.startsWith('2') ? content : {}) },
  ]);
  const byStatus = Map.groupBy(new Set(codes), (code) => new ApiError(code).status);
  const errors = [...byStatus].map(([code_status, same]) => [
    code_status,
    errorAnswer(same, { ...common, ...errorHeaders(code_status, same) }),
  ]);
  return {
    [status]: { description: status === 101 ? 'the connection is upgraded' : 'success', headers, ...content },
    ...Object.fromEntries(also),
    ...Object.fromEntries(errors),
    default: {
      description: 'any other error',
      headers: common,
      content: { 'application/json': { schema: schemaRef('Error') } },
    },
  };
}

function errorHeaders(status: number, codes: readonly ErrorCode[]): object {
  const is_refusal = codes.includes('quota_exceeded');
  return { ...(is_refusal ? REFUSED : {}), ...(status === 429 || status === 503 ? RETRY : {}) };
}

function errorAnswer(codes: readonly ErrorCode[], headers: object): object {
  const [schema, ...others] = codes.map((code) => schemaRef(errorName(code)));
  const content = { schema: others.length === 0 ? schema : { anyOf: [schema, ...others] } };
  return { description: codes.join(', '), headers, content: { 'application/json': content } };
}

function contentOf(id: string, { data, media, content, is_also_stream }: Route): object {
  if (media !== undefined) return { content: { [media]: { schema: content ?? mediaSchema(media) } } };
  if (!data) return {};
  const { title = `${id[0]?.toUpperCase()}${id.slice(1)}` }: { title?: string } = data;
  const schema = { ...envelope({ success: { const: true }, data }), title: `${title}Response` };
  const example = { success: true, data: exampleOf(data, EXAMPLES) };
  const stream = is_also_stream ? { 'text/event-stream': { schema: mediaSchema('text/event-stream') } } : {};
  return { content: { 'application/json': { schema, example }, ...stream } };
}

/** The schema of a body that is not JSON. */
export function mediaSchema(media: string): object {
  return media.startsWith('text/') ? { type: 'string' } : { type: 'string', format: 'binary' };
}

function envelope(properties: Record<string, object | TSchema>): object {
  return { type: 'object', required: Object.keys(properties), properties };
}

/** The name of an error among the schemas, such as `NotFoundError`. */
function errorName(code: ErrorCode): string {
  const words = code.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return words.endsWith('Error') ? words : `${words}Error`;
}

/** The schemas of the named errors, and `Error`, which any error matches. */
export function errorSchemas(codes: readonly ErrorCode[]): Record<string, object> {
  const named = [...new Set(codes)].sort().map((code) => [errorName(code), errorSchema(code)]);
  return { Error: anyError(), ...Object.fromEntries(named) };
}

function errorSchema(code: ErrorCode): object {
  const details = ERROR_DETAILS[code];
  const error = { code: { const: code }, message: { type: 'string' } };
  return {
    ...envelope({ success: { const: false }, error: { ...envelope(error), ...withDetails(error, details) } }),
    description: new ApiError(code).message,
  };
}

function withDetails(error: Record<string, object>, details: TSchema | undefined): object {
  return details === undefined ? {} : { properties: { ...error, details } };
}

function anyError(): object {
  const error = { code: { type: 'string', enum: ERROR_CODES }, message: { type: 'string' } };
  const details = { type: 'object', description: 'what is at fault, such as the `field` or the `path`' };
  return envelope({
    success: { const: false },
    error: { ...envelope(error), properties: { ...error, details } },
  });
}
