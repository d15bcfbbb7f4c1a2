import type { Answer } from './connector.ts';
import { SandboxdError } from './error.ts';
import type { RawBody } from './routes.ts';

/** What a header can hold. */
const TOKEN = /^[\x21-\x7e]*$/;
const HEADER = /^[\t\x20-\x7e\x80-\xff]*$/;
const CONDITIONS = ['if-match', 'if-none-match', 'if-unmodified-since'];
/** Answers of which nobody knows whether the request was carried out before: none, and those of proxies. */
const UNCERTAIN = new Set([0, 502, 504]);
/** Bodies of platforms that have them, by their tags: naming their classes would load what few calls need. */
const BLOBS = new Set(['[object Blob]', '[object File]']);

/** A body as each attempt sends it: bytes as they are, all else as JSON. Throws `invalid_request` where there is none. */
export function sentBody(body: unknown): unknown {
  if (body === undefined || isRaw(body)) return body;
  try {
    return JSON.stringify(body);
  } catch (error) {
    throw invalid('body', `must be what JSON can hold: ${(error as Error).message}`);
  }
}

/** Whether a body is sent as it is. */
export function isRaw(body: unknown): body is RawBody {
  return (
    typeof body === 'string' ||
    body instanceof Uint8Array ||
    body instanceof ArrayBuffer ||
    BLOBS.has(Object.prototype.toString.call(body)) ||
    isStream(body)
  );
}

/** Whether a body is a stream, which can be sent once. */
export function isStream(body: unknown): boolean {
  if (typeof body !== 'object' || body === null) return false;
  return Symbol.asyncIterator in body || Object.prototype.toString.call(body) === '[object ReadableStream]';
}

/** A token as a header takes it. Throws `invalid_request`, which does not show it; what refuses a header would. */
export function usableToken(token: string): string {
  const trimmed = token.trim();
  if (!TOKEN.test(trimmed)) throw invalid('token', 'must be printable ASCII without spaces');
  return trimmed;
}

/** Headers by names in lower case. Throws `invalid_request` for a value that none can have. */
export function sentHeaders(headers: Record<string, string> = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => {
      if (!HEADER.test(value)) throw invalid(`headers.${name}`, 'must be Latin-1 on one line');
      return [name.toLowerCase(), String(value)];
    }),
  );
}

/**
 * A route below a root, with its parameters in it. Ids can come from a hostile sandbox: `..` would make another route of
 * the one that is called, and is an `invalid_request`.
 */
export function urlOf(
  root: string,
  route: string,
  parameters: Record<string, string> = {},
  query: Record<string, unknown> = {},
): URL {
  for (const [field, value] of Object.entries(parameters)) {
    if (/^\.{0,2}$/.test(value)) throw invalid(field, 'must not be empty, . or ..');
  }
  const path = route.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(parameters[name] ?? ''),
  );
  const url = new URL(root.replace(/\/$/, '') + path);
  for (const [name, value] of Object.entries(query)) {
    for (const each of [value ?? []].flat()) url.searchParams.append(name, String(each));
  }
  return url;
}

/** A change under a condition that may have been made: the same again would find its own work, and be refused for it. */
export function mayRefuteItself(
  method: string,
  headers: Record<string, string>,
  { status }: SandboxdError,
): boolean {
  if (method === 'GET' || method === 'HEAD' || !UNCERTAIN.has(status)) return false;
  return CONDITIONS.some((name) => name in headers);
}

/**
 * The `data` of a JSON answer; undefined where there is nothing; otherwise the response itself. Throws `bad_answer` where
 * JSON is announced and is not there.
 */
export async function answerIn(answer: Answer): Promise<unknown> {
  const { status } = answer;
  if (status === 204) return undefined;
  if (!answer.is_json) return answer.response();
  const json = (await answer.json()) as { success?: unknown; data?: unknown } | null | undefined;
  if (json === undefined) {
    const message = 'the answer is not the JSON that it is said to be';
    throw new SandboxdError({ code: 'bad_answer', message, status });
  }
  return json?.success === true ? json.data : json;
}

/** The value of a JSON text; undefined for any other text. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function invalid(field: string, problem: string): SandboxdError {
  const message = `${field}: ${problem}`;
  return new SandboxdError({ code: 'invalid_request', message, status: 0, details: { field } });
}
