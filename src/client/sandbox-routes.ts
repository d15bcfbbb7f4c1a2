import type { Answer } from './connector.ts';
import type { HttpClient } from './http-client.ts';
import { answerIn } from './message.ts';
import type { RawCall } from './routes.ts';
import type { OpenSocket } from './streams/socket.ts';

/** The routes of one sandbox: of its daemon itself, or passed through by a manager. */
export class SandboxRoutes {
  readonly #client: HttpClient<unknown>;
  readonly #prefix: string;
  readonly #sandbox: Record<string, string>;

  /** `sandbox_id`: at a manager; null for a daemon. */
  constructor(client: HttpClient<unknown>, sandbox_id: string | null) {
    this.#client = client;
    this.#prefix = sandbox_id === null ? '/api/v1' : '/api/v1/sandboxes/{sandbox_id}';
    this.#sandbox = sandbox_id === null ? {} : { sandbox_id };
  }

  /** As `HttpClient.send`, with a path below the sandbox's. */
  send(method: string, path: string, call: RawCall = {}): Promise<Response> {
    return this.#client.send(method, this.#prefix + path, this.#located(call));
  }

  /** As `HttpClient.ask`. */
  ask(method: string, path: string, call: RawCall = {}): Promise<Answer> {
    return this.#client.ask(method, this.#prefix + path, this.#located(call));
  }

  /** The `data` of a JSON answer. */
  async data(method: string, path: string, call: RawCall = {}): Promise<unknown> {
    return answerIn(await this.ask(method, path, call));
  }

  /** Opens a WebSocket. */
  connect(path: string, call: RawCall = {}): Promise<OpenSocket> {
    return this.#client.connect(this.#prefix + path, this.#located(call));
  }

  #located(call: RawCall): RawCall {
    return { ...call, path: { ...this.#sandbox, ...call.path } };
  }
}
