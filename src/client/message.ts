import { SandboxdError } from './error.ts';
import type { RawBody } from './routes.ts';

/** What a header can hold. */
const TOKEN = /^[\x21-\x7e]*$/;
const CONDITIONS = ['if-match', 'if-none-match', 'if-unmodified-since'];
/** Answers of which nobody knows whether the request was carried out before: none, and those of proxies. */
const UNCERTAIN = new Set([0, 502, 504]);

/** A body as each attempt sends it: bytes as they are, all else as JSON. Throws `invalid_request` where there is none. */
export function sentBody(body: unknown): RawBody | undefined {
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
    body instanceof Blob ||
    body instanceof ReadableStream
  );
}

/** A token as a header takes it. Throws `invalid_request`, which does not show it; what refuses a header would. */
export function usableToken(token: string): string {
  const trimmed = token.trim();
  if (!TOKEN.test(trimmed)) throw invalid('token', 'must be printable ASCII without spaces');
  return trimmed;
}

/** Ids can come from a hostile sandbox: in a URL, `..` would make another route of the one that is called. */
export function checkPath(parameters: Record<string, string>): void {
  for (const [field, value] of Object.entries(parameters)) {
    if (/^\.{0,2}$/.test(value)) throw invalid(field, 'must not be empty, . or ..');
  }
}

/** A change under a condition that may have been made: the same again would find its own work, and be refused for it. */
export function mayRefuteItself(method: string, headers: Headers, { status }: SandboxdError): boolean {
  if (method === 'GET' || method === 'HEAD' || !UNCERTAIN.has(status)) return false;
  return CONDITIONS.some((name) => headers.has(name));
}

/** Reads a JSON answer to its end, so that one that breaks off is no answer; others are left to be read. */
export async function readWhole(response: Response): Promise<Response> {
  if (response.body === null || !isJson(response)) return response;
  const { status, statusText, headers } = response;
  return new Response(await response.text(), { status, statusText, headers });
}

/**
 * The `data` of a JSON answer; undefined where there is nothing; otherwise the response itself. Throws `bad_answer` where
 * JSON is announced and is not there.
 */
export async function answerIn(response: Response): Promise<unknown> {
  if (response.status === 204) return undefined;
  if (!isJson(response)) return response;
  const json = (await response.json().catch((cause: unknown) => {
    const message = 'the answer is not the JSON that it is said to be';
    throw new SandboxdError({ code: 'bad_answer', message, status: response.status, cause });
  })) as { success?: unknown; data?: unknown } | null;
  return json?.success === true ? json.data : json;
}

function isJson({ headers }: Response): boolean {
  return headers.get('content-type')?.startsWith('application/json') ?? false;
}

function invalid(field: string, problem: string): SandboxdError {
  const message = `${field}: ${problem}`;
  return new SandboxdError({ code: 'invalid_request', message, status: 0, details: { field } });
}
