import type { Answer } from './connector.ts';
import { Files } from './files.ts';
import type { HttpClient } from './http-client.ts';
import type { paths } from './openapi/daemon-api.ts';
import { cursorPages } from './pages.ts';
import { RouteCalls } from './route-calls.ts';
import type { AnswerOf, InitOf, RawCall } from './routes.ts';
import { type RunOptions, type RunResult, runIn } from './run.ts';
import { SandboxRoutes } from './sandbox-routes.ts';
import { Attachment, type AttachOptions } from './streams/attachment.ts';
import { type OutputEvent, type OutputOptions, outputOf } from './streams/output.ts';
import type { Process } from './streams/process.ts';
import { type ReadOutputOptions, readOutput, type TakeOutput } from './streams/read-output.ts';
import { type FollowStreamOptions, followEvents } from './streams/reconnect.ts';
import { type Input, sendInput } from './streams/send-input.ts';
import type { OpenSocket } from './streams/socket.ts';

/** A delivery in a list. */
export type Delivery = DeliveryPage['deliveries'][number];

/** A process in a list: of a long command it has the beginning. */
export type ListedProcess = ProcessPage['processes'][number];

type ProcessPage = AnswerOf<paths, '/api/v1/processes', 'get'>;
type ProcessQuery = NonNullable<InitOf<paths, '/api/v1/processes', 'get'>['query']>;
type DeliveryPage = AnswerOf<paths, '/api/v1/webhook/deliveries', 'get'>;
type DeliveryQuery = NonNullable<InitOf<paths, '/api/v1/webhook/deliveries', 'get'>['query']>;

/** An event as it was committed: `body` is the exact text of the webhook's request. */
export interface StreamedEvent {
  sequence: number;
  event_type: string;
  body: string;
}

/** The daemon's routes that a manager passes through, by their paths in the daemon's document. */
type SandboxPaths = {
  [Path in keyof paths as Path extends `${typeof ROOT}/${PassedPath}${string}` ? Path : never]: paths[Path];
};
type PassedPath = 'processes' | 'contexts' | 'files' | 'webhook/deliveries' | 'events/stream';

const ROOT = '/api/v1';

/**
 * Streams, files and pages of one sandbox: of its daemon itself, or through a manager. Its routes are called by the
 * daemon's paths in both cases: `sandbox.GET('/api/v1/processes')`.
 */
export class Sandbox extends RouteCalls<SandboxPaths> {
  readonly files: Files;
  readonly #routes: SandboxRoutes;

  /** `sandbox_id`: at a manager; null for a daemon. */
  constructor(client: HttpClient<unknown>, sandbox_id: string | null) {
    super();
    this.#routes = new SandboxRoutes(client, sandbox_id);
    this.files = new Files(this.#routes);
  }

  protected async call(method: string, path: string, init?: RawCall): Promise<unknown> {
    const below = path.slice(ROOT.length);
    return method === 'HEAD'
      ? this.#routes.send(method, below, init)
      : this.#routes.data(method, below, init);
  }

  /** Calls a route by the daemon's path, and gives the answer of a success with its body unread. */
  ask(method: string, path: string, init?: RawCall): Promise<Answer> {
    return this.#routes.ask(method, path.slice(ROOT.length), init);
  }

  /** Opens a WebSocket by the daemon's path, such as `/api/v1/files/watch`. */
  connect(path: string, init?: RawCall): Promise<OpenSocket> {
    return this.#routes.connect(path.slice(ROOT.length), init);
  }

  /**
   * Runs a command to its end: a text in `/bin/sh`, a list as program and arguments. Resolves with its exit code, which is
   * no error where it is not 0, and the last 16 MiB of what it wrote. Throws a `SandboxdError` where it cannot be started or
   * followed. Contract section 4, POST `/processes`.
   */
  run(command: string | readonly string[], options: RunOptions = {}): Promise<RunResult> {
    return runIn(this.#routes, command, options);
  }

  /**
   * Reads all output of a process as bytes, with a connection for each stream, until it has ended, and resolves with it.
   * In which order stdout and stderr were written is not seen; `output` tells that, and costs more.
   */
  readOutput(process_id: string, take: TakeOutput, options: ReadOutputOptions = {}): Promise<Process> {
    return readOutput(this.#routes, process_id, take, options);
  }

  /** Sends input to a process, piece by piece, and closes its stdin. Throws `conflict` where it takes no more. */
  sendInput(
    process_id: string,
    input: Input,
    options: Omit<FollowStreamOptions, 'onConnection'> = {},
  ): Promise<void> {
    return sendInput(this.#routes, process_id, input, options);
  }

  /** The output of a process, byte for byte, over as many connections as it takes, then its end. */
  output(process_id: string, options: OutputOptions = {}): AsyncGenerator<OutputEvent, void> {
    return outputOf(this.#routes, process_id, options);
  }

  /** Attaches to a process, as a terminal does. */
  attach(process_id: string, options: AttachOptions = {}): Attachment {
    return new Attachment(this.#routes, process_id, options);
  }

  /**
   * Follows the sandbox's events from now on, or after `after`, the `sequence` of the last one that was seen; 0 is from
   * the oldest that is kept. It reconnects where it was. Contract section 4, GET `/events/stream`.
   */
  async *events({
    after,
    signal,
    onConnection,
    reconnect_ms,
  }: FollowStreamOptions & { after?: number } = {}): AsyncGenerator<StreamedEvent, void> {
    const open = (last_id: string | null) => {
      const id = last_id ?? after;
      const resumed: Record<string, string> = id === undefined ? {} : { 'last-event-id': String(id) };
      const headers = { accept: 'text/event-stream', ...resumed };
      return this.#routes.ask('GET', '/events/stream', { headers, signal });
    };
    for await (const { id, event, data } of followEvents({ open, signal, onConnection, reconnect_ms })) {
      yield { sequence: Number(id), event_type: event, body: data };
    }
  }

  /** The sandbox's processes, running and ended, newest first, page by page. */
  processes(query: ProcessQuery = {}): AsyncGenerator<ListedProcess, void> {
    return cursorPages(query.cursor, async (cursor) => {
      const page = await this.#routes.data('GET', '/processes', { query: { ...query, cursor } });
      const { processes, next_cursor } = page as ProcessPage;
      return { items: processes, next_cursor };
    });
  }

  /** The sandbox's deliveries, newest first, page by page. */
  deliveries(query: DeliveryQuery = {}): AsyncGenerator<Delivery, void> {
    return cursorPages(query.cursor, async (cursor) => {
      const page = await this.#routes.data('GET', '/webhook/deliveries', { query: { ...query, cursor } });
      const { deliveries, next_cursor } = page as DeliveryPage;
      return { items: deliveries, next_cursor };
    });
  }
}
