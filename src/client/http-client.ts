import createFetchClient from 'openapi-fetch';
import { errorOfAnswer, SandboxdError, unreachable } from './error.ts';
import { limited } from './limit.ts';
import { answerIn, checkPath, isRaw, mayRefuteItself, readWhole, sentBody, usableToken } from './message.ts';
import { pause } from './pause.ts';
import { DEFAULT_RETRY, delayBeforeRetry, type RetryPolicy } from './retry.ts';
import { RouteCalls } from './route-calls.ts';
import type { RawCall } from './routes.ts';
import { type OpenSocket, openSocket } from './streams/socket.ts';

/** Where a client calls, and how. */
export interface ClientOptions {
  /** The root of the server, such as `https://sandboxes.example.com`; a path in it is kept. */
  url: string;
  /** The bearer token, or what gives it for each attempt. */
  token?: string | (() => string | Promise<string>);
  /** Instead of the global `fetch`. */
  fetch?: typeof fetch;
  retry?: Partial<RetryPolicy>;
}

/** Answers of these POSTs are kept under an `Idempotency-Key`, which makes them safe to repeat. */
const KEYED = new Set(['/api/v1/sandboxes', '/api/v1/webhook/publish']);
const IDEMPOTENCY_KEY = 'Idempotency-Key';

/** Calls the routes of one document. */
export class HttpClient<Paths> extends RouteCalls<Paths> {
  readonly #options: ClientOptions;
  readonly #policy: RetryPolicy;
  readonly #client: ReturnType<typeof createFetchClient<Record<string, never>>>;

  constructor(options: ClientOptions) {
    super();
    this.#options = options;
    this.#policy = { ...DEFAULT_RETRY, ...options.retry };
    const own_fetch = options.fetch ?? fetch;
    // A redirection could lead the token astray; the programs send none. A browser's fetch wants its own `this`.
    this.#client = createFetchClient({
      baseUrl: options.url,
      redirect: 'manual',
      fetch: async (request) => limited(await own_fetch(request)),
    });
  }

  protected async call(method: string, path: string, init?: RawCall): Promise<unknown> {
    const response = await this.send(method, path, init);
    return method === 'HEAD' ? response : answerIn(response);
  }

  /**
   * Calls a route and gives the answer of a success with its body unread. Throws a `SandboxdError` otherwise. Repeats
   * GET, HEAD, PUT, DELETE, and what carries an `Idempotency-Key`, after failures that may pass; a change under a condition
   * (`If-Match`, `If-None-Match`) only where it was surely not made.
   */
  async send(method: string, path: string, init: RawCall = {}): Promise<Response> {
    checkPath(init.path ?? {});
    const headers = new Headers(init.headers);
    const has_own_key = method === 'POST' && KEYED.has(path) && !headers.has(IDEMPOTENCY_KEY);
    if (has_own_key) headers.set(IDEMPOTENCY_KEY, randomKey());
    const is_safe = method !== 'POST' || headers.has(IDEMPOTENCY_KEY) || namesItsProcess(path, init.body);
    const is_repeatable = is_safe && init.retry !== false && !(init.body instanceof ReadableStream);
    if (isRaw(init.body) && !headers.has('content-type'))
      headers.set('content-type', 'application/octet-stream');
    // Once: what a caller changes meanwhile is another call.
    const call = { ...init, body: sentBody(init.body) };
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#attempt(method, path, call, headers);
      if (answer instanceof Response) return answer;
      const failed = { error: answer, attempt, has_own_key };
      const is_repeated = is_repeatable && !mayRefuteItself(method, headers, answer);
      const wait_ms = is_repeated ? delayBeforeRetry(failed, this.#policy, Math.random()) : null;
      if (wait_ms === null) throw answer;
      await pause(wait_ms, init.signal);
    }
  }

  async #attempt(
    method: string,
    path: string,
    { path: parameters, query, body, signal }: RawCall,
    given: Headers,
  ): Promise<Response | SandboxdError> {
    const headers = new Headers(given);
    const token = await this.#token();
    if (token !== null && !headers.has('authorization')) headers.set('authorization', `Bearer ${token}`);
    const request: Record<string, unknown> = {
      params: { path: parameters, query },
      headers,
      signal,
      parseAs: 'stream',
      ...(body === undefined ? {} : { body, bodySerializer: (given: unknown) => given }),
      ...(body instanceof ReadableStream ? { duplex: 'half' } : {}),
    };
    try {
      // The compiler knows the routes by the methods above.
      const { response, error } = await this.#client.request(
        method as never,
        path as never,
        request as never,
      );
      // A redirection that is not followed has status 0 in browsers.
      return response.ok ? await readWhole(response) : errorOfAnswer(response, error);
    } catch (error) {
      signal?.throwIfAborted();
      return failureOf(error);
    }
  }

  /** Opens a WebSocket. Throws `unreachable` where there is no answer, or a refusal, of which nobody is told more. */
  async connect(path: string, { path: parameters = {}, query = {}, signal }: RawCall): Promise<OpenSocket> {
    checkPath(parameters);
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(parameters[name] ?? ''),
    );
    const url = new URL(this.#options.url.replace(/\/$/, '') + filled);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    return openSocket(url, await this.#token(), signal);
  }

  async #token(): Promise<string | null> {
    const { token } = this.#options;
    const given = (typeof token === 'function' ? await token() : token) ?? null;
    return given === null ? null : usableToken(given);
  }
}

function failureOf(error: unknown): SandboxdError {
  return error instanceof SandboxdError ? error : unreachable(error);
}

/** A start that chooses the id of its process: the same again gives that process. */
function namesItsProcess(path: string, body: unknown): boolean {
  return path.endsWith('/processes') && (body as { process_id?: unknown } | null)?.process_id !== undefined;
}

/** A key that nobody else has. `crypto.randomUUID` is missing where a page comes over plain HTTP. */
export function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('');
}
