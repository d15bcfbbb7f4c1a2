import type { Answer, Connector, SentRequest } from './connector.ts';
import { errorOfAnswer, SandboxdError } from './error.ts';
import { fetchConnector } from './fetch-connector.ts';
import {
  answerIn,
  isRaw,
  isStream,
  mayRefuteItself,
  sentBody,
  sentHeaders,
  urlOf,
  usableToken,
} from './message.ts';
import { pause } from './pause.ts';
import { DEFAULT_RETRY, delayBeforeRetry, type RetryPolicy } from './retry.ts';
import { RouteCalls } from './route-calls.ts';
import type { RawCall } from './routes.ts';
import type { OpenSocket } from './streams/socket.ts';

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
const IDEMPOTENCY_KEY = 'idempotency-key';

/** Calls the routes of one document. */
export class HttpClient<Paths> extends RouteCalls<Paths> {
  readonly #options: ClientOptions;
  readonly #policy: RetryPolicy;
  readonly #connector: Connector;

  constructor(options: ClientOptions, connector: Connector = fetchConnector(options.fetch)) {
    super();
    this.#options = options;
    this.#policy = { ...DEFAULT_RETRY, ...options.retry };
    this.#connector = connector;
  }

  protected async call(method: string, path: string, init?: RawCall): Promise<unknown> {
    const answer = await this.ask(method, path, init);
    return method === 'HEAD' ? answer.response() : answerIn(answer);
  }

  /**
   * Calls a route and gives the answer of a success with its body unread. Throws a `SandboxdError` otherwise. Repeats
   * GET, HEAD, PUT, DELETE, and what carries an `Idempotency-Key`, after failures that may pass; a change under a condition
   * (`If-Match`, `If-None-Match`) only where it was surely not made.
   */
  async send(method: string, path: string, init: RawCall = {}): Promise<Response> {
    return (await this.ask(method, path, init)).response();
  }

  /** The same as `send`, with the answer as the connector has it; JSON is read. */
  async ask(method: string, path: string, init: RawCall = {}): Promise<Answer> {
    const headers = sentHeaders(init.headers);
    const has_retries = init.retry !== false && this.#policy.retries > 0;
    const has_own_key = method === 'POST' && KEYED.has(path) && has_retries && !(IDEMPOTENCY_KEY in headers);
    if (has_own_key) headers[IDEMPOTENCY_KEY] = randomKey();
    const is_safe = method !== 'POST' || IDEMPOTENCY_KEY in headers || namesItsProcess(path, init.body);
    const is_repeatable = is_safe && has_retries && !isStream(init.body);
    if (init.body !== undefined)
      headers['content-type'] ??= isRaw(init.body) ? 'application/octet-stream' : 'application/json';
    // Once: what a caller changes meanwhile is another call.
    const attempt = {
      method,
      url: urlOf(this.#options.url, path, init.path, init.query),
      headers,
      body: sentBody(init.body),
      timeout_ms: init.timeout_ms,
      signal: init.signal,
    };
    for (let attempts = 1; ; attempts++) {
      const answer = await this.#attempt(attempt);
      if (!(answer instanceof SandboxdError)) return answer;
      const failed = { error: answer, attempt: attempts, has_own_key };
      const is_repeated = is_repeatable && !mayRefuteItself(method, headers, answer);
      const wait_ms = is_repeated ? delayBeforeRetry(failed, this.#policy, Math.random()) : null;
      if (wait_ms === null) throw answer;
      await pause(wait_ms, init.signal);
    }
  }

  async #attempt({ headers, ...attempt }: SentRequest): Promise<Answer | SandboxdError> {
    const token = await this.#token();
    const proof: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
    try {
      attempt.signal?.throwIfAborted();
      const answer = await this.#connector.send({ ...attempt, headers: { ...proof, ...headers } });
      // A redirection that is not followed has status 0 in browsers.
      const is_success = answer.status >= 200 && answer.status < 300;
      if (!is_success) return errorOfAnswer(answer, await answer.json());
      // One that breaks off is no answer.
      if (answer.is_json) await answer.json();
      return answer;
    } catch (error) {
      attempt.signal?.throwIfAborted();
      if (error instanceof SandboxdError) return error;
      throw error;
    }
  }

  /** Opens a WebSocket. Throws `unreachable` where there is no answer, or a refusal, of which nobody is told more. */
  async connect(path: string, { path: parameters, query, signal }: RawCall): Promise<OpenSocket> {
    const url = urlOf(this.#options.url, path, parameters, query);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    return this.#connector.connect(url, await this.#token(), signal);
  }

  async #token(): Promise<string | null> {
    const { token } = this.#options;
    const given = (typeof token === 'function' ? await token() : token) ?? null;
    return given === null ? null : usableToken(given);
  }
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
