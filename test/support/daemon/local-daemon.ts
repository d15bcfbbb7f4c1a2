import type { Daemon } from '../../../src/daemon/daemon.ts';
import { type Running, startDaemon } from './running-daemon.ts';

/** Nobody listens there: what is delivered stays in the outbox. */
export const DOWN_URL = 'http://127.0.0.1:9/';

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: what the API answers is what a test looks at.
  data: any;
  error: { code: string; message: string; details?: { field?: string; [name: string]: unknown } };
}

export interface Asked {
  method?: string;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as it is. */
  body?: string | Uint8Array;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** The whole daemon inside this test, and what tests of processes ask it for. */
export class LocalDaemon {
  readonly daemon: Daemon;
  readonly token: string;

  private constructor({ daemon, token }: Running) {
    this.daemon = daemon;
    this.token = token;
  }

  /** It ends with the present test. */
  static async start(...args: string[]): Promise<LocalDaemon> {
    return new LocalDaemon(await startDaemon('--shutdown-grace-ms', '500', ...args));
  }

  get url(): string {
    return `${this.daemon.url}/api/v1`;
  }

  get authorization(): { authorization: string } {
    return { authorization: `Bearer ${this.token}` };
  }

  /** One request below `/api/v1`. */
  async ask(path: string, asked: Asked = {}): Promise<Answer> {
    const { json, body = json === undefined ? undefined : JSON.stringify(json), headers, signal } = asked;
    const response = await fetch(`${this.url}${path}`, {
      method: asked.method ?? (body === undefined ? 'GET' : 'POST'),
      ...(body === undefined ? {} : { body: body as string }),
      ...(signal ? { signal } : {}),
      headers: {
        ...this.authorization,
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
    });
    const text = await response.text();
    const is_json = response.headers.get('content-type')?.startsWith('application/json');
    const envelope = is_json && text !== '' ? JSON.parse(text) : {};
    return { status: response.status, headers: response.headers, text, ...envelope };
  }

  /** Starts a process; throws where it is refused. */
  // biome-ignore lint/suspicious/noExplicitAny: see Answer.
  async run(request: object, query = ''): Promise<any> {
    const { data, text } = await this.ask(`/processes${query}`, { json: request });
    if (!data) throw new Error(text);
    return data;
  }

  /** The process once it has ended. */
  // biome-ignore lint/suspicious/noExplicitAny: see Answer.
  async ended(process_id: string): Promise<any> {
    return (await this.ask(`/processes/${process_id}/wait`)).data;
  }

  /** All that is kept of a stream, once the process has ended. */
  async output(process_id: string, stream: 'stdout' | 'stderr' = 'stdout'): Promise<Buffer> {
    const response = await fetch(`${this.url}/processes/${process_id}/output?stream=${stream}&follow=true`, {
      headers: { ...this.authorization, accept: 'application/octet-stream' },
    });
    return Buffer.from(await response.arrayBuffer());
  }

  /** The payloads of the events of a type that are committed, oldest first. */
  async events(event_type: string): Promise<Record<string, unknown>[]> {
    const { deliveries } = (await this.ask(`/webhook/deliveries?event_type=${event_type}&limit=1000`)).data;
    const bodies = deliveries.map(async ({ event_id }: { event_id: string }) => {
      const { data } = await this.ask(`/webhook/deliveries/${event_id}`);
      return JSON.parse(data.body).payload;
    });
    return (await Promise.all(bodies)).reverse();
  }
}
