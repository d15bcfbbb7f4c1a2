import { program, refusal, token } from '../base/session.ts';
import { noteAway, ROOT } from './connection.ts';
import { type Problem, RequestProblem } from './problem.ts';

/** Values of a query; undefined and null leave a key out, a list repeats it. */
export type Query = Record<string, string | number | boolean | readonly string[] | null | undefined>;

/** What a request carries beside its method and path. */
export interface RequestOptions {
  query?: Query;
  /** Sent as JSON. */
  json?: unknown;
  headers?: Record<string, string>;
  body?: BodyInit;
  signal?: AbortSignal;
}

interface Envelope {
  success?: boolean;
  data?: unknown;
  error?: { code: string; message: string; details?: Record<string, unknown> };
}

/** The URL of a path below `/api/v1`. */
export function apiUrl(path: string, query: Query = {}): URL {
  const url = new URL(`api/v1${path}`, ROOT);
  for (const [key, value] of Object.entries(query)) {
    for (const each of [value ?? []].flat()) url.searchParams.append(key, String(each));
  }
  return url;
}

/** The header that proves who asks; none where the server holds the token. */
export function authorization(): Record<string, string> {
  return token.value === null ? {} : { authorization: `Bearer ${token.value}` };
}

/** Sends one request below `/api/v1`; resolves with its `data`, rejects with a `RequestProblem`. */
export async function call<Data>(method: string, path: string, options: RequestOptions = {}): Promise<Data> {
  const response = await send(method, path, options);
  if (response.status === 204) return undefined as Data;
  const envelope = await envelopeOf(response);
  if (envelope?.success !== true) throw noAnswer(`The server answered with ${response.status} and no data.`);
  return envelope.data as Data;
}

/** Sends one request; resolves with a successful response whose body is still to be read. */
export async function send(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
  const { query, json, headers, body, signal } = options;
  const used = token.value;
  const response = await reach(apiUrl(path, query), {
    method,
    headers: {
      ...authorization(),
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    cache: 'no-store',
    credentials: 'omit',
    redirect: 'error',
    ...(json === undefined ? (body === undefined ? {} : { body }) : { body: JSON.stringify(json) }),
    ...(signal ? { signal } : {}),
  });
  if (response.ok) return response;
  const problem = await problemIn(response);
  if (problem.code === 'bad_gateway' && program.value === 'daemon') noteAway();
  if (problem.code === 'unauthorized' && program.value === 'manager' && token.value === used) {
    refusal.set('The manager does not know this token, or it has been revoked.');
  }
  throw new RequestProblem(problem);
}

/** Whether an error means that its request was given up by the page itself. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

async function reach(url: URL, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    if (isAbort(error)) throw error;
    noteAway();
    throw noAnswer('The server cannot be reached.');
  }
}

function noAnswer(message: string): RequestProblem {
  return new RequestProblem({ code: 'unreachable', message, status: 0, details: {}, retry_after_s: null });
}

/** What a refused request says. */
export async function problemIn(response: Response): Promise<Problem> {
  const envelope = await envelopeOf(response);
  const retry_after = Number(response.headers.get('retry-after') ?? Number.NaN);
  const { code, message, details } = envelope?.error ?? {
    code: 'unreachable',
    message: `The server answered with ${response.status}, and not as a manager or daemon does.`,
  };
  return {
    code,
    message,
    status: response.status,
    details: details ?? {},
    retry_after_s: Number.isFinite(retry_after) ? retry_after : null,
  };
}

async function envelopeOf(response: Response): Promise<Envelope | null> {
  try {
    return (await response.json()) as Envelope | null;
  } catch {
    return null;
  }
}
