import { Agent, type IncomingMessage, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { serverEvents } from '../../../src/client/streams/server-events.ts';
import { NodeAnswer } from '../../../src/ctl/api/node-answer.ts';
import type { Daemon } from './daemon.ts';
import { nowMs } from './numbers.ts';
import type { Following } from './output-client.ts';

/** An event of a process, and when the daemon told that it is committed. */
export interface Told {
  event_type: string;
  process_id: string;
  told_ms: number;
}

/** Starts processes in a daemon and follows its events. */
export class ProcessClient {
  readonly #daemon: Daemon;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #told: Told[] = [];
  #stream: IncomingMessage | null = null;
  #wake = Promise.withResolvers<void>();

  constructor(daemon: Daemon) {
    this.#daemon = daemon;
  }

  /** Follows the events from now on. */
  async follow(): Promise<void> {
    const stream = await this.#send('GET', '/events/stream');
    this.#stream = stream;
    void this.#read(stream).catch(() => {});
  }

  /** The `data` of an answer. */
  // biome-ignore lint/suspicious/noExplicitAny: what the API answers.
  async ask(method: string, path: string, body?: object): Promise<any> {
    const response = await this.#send(method, path, body && JSON.stringify(body));
    const { data, error } = JSON.parse((await buffer(response)).toString());
    if (error) throw new Error(error.message);
    return data;
  }

  /** The kept bytes of a process's stdout, and the offset of the first. */
  async output(process_id: string): Promise<{ offset: number; bytes: Buffer }> {
    const path = `/processes/${process_id}/output?stream=stdout`;
    const response = await this.#send('GET', path, undefined, { accept: 'application/octet-stream' });
    return { offset: Number(response.headers['x-output-offset']), bytes: await buffer(response) };
  }

  /** Starts a process whose stdout waits to be followed without loss; gives what follows it, as bytes. */
  async startLossless(command: string[]): Promise<Following> {
    const { process_id } = await this.ask('POST', '/processes?lossless=true', { command });
    const path = `/processes/${process_id}/output?stream=stdout&follow=true&lossless=true`;
    return { url: `${this.#daemon.url}/api/v1${path}`, ...this.#daemon.authorization };
  }

  /** Resolves with the events of a type once there are so many. */
  async events(event_type: string, count: number): Promise<Told[]> {
    for (;;) {
      const found = this.#told.filter((told) => told.event_type === event_type);
      if (found.length >= count) return found;
      await this.#wake.promise;
    }
  }

  close(): void {
    this.#stream?.destroy();
    this.#agent.destroy();
  }

  async #read(stream: IncomingMessage): Promise<void> {
    for await (const { event, data } of serverEvents(new NodeAnswer(stream, undefined))) {
      const { process_id } = JSON.parse(data).payload;
      this.#told.push({ event_type: event, process_id, told_ms: nowMs() });
      this.#wake.resolve();
      this.#wake = Promise.withResolvers();
    }
  }

  #send(method: string, path: string, body?: string, headers = {}): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const sent = request(`${this.#daemon.url}/api/v1${path}`, {
        method,
        agent: this.#agent,
        headers: {
          ...this.#daemon.authorization,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
      });
      sent.on('response', resolve).on('error', reject).end(body);
    });
  }
}
