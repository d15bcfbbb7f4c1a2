import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';

/** One request that a consumer got. */
export interface Received {
  event_id: string;
  attempt: number;
  body: string;
  /** What it was answered; null while it waits. */
  status: number | null;
}

/** A receiver that tells whether a record was sent again while it was being sent. */
export class TrackingConsumer {
  readonly received: Received[] = [];
  /** Event ids of which two requests were open at the same time. */
  readonly overlapping: string[] = [];
  readonly #open = new Map<string, number>();
  url = '';
  /** Answers a request; whoever answers none lets it hang. */
  answer: (received: Received, respond: (status: number) => void) => void = (_, respond) => respond(204);

  static async start(): Promise<TrackingConsumer> {
    const consumer = new TrackingConsumer();
    const server = createServer(async (request, response) => {
      const body = (await buffer(request).catch(() => Buffer.alloc(0))).toString('utf8');
      if (body !== '') consumer.#take(body, Number(request.headers['x-service-attempt']), response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    consumer.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    onTestFinished(() => {
      server.close();
      server.closeAllConnections();
    });
    return consumer;
  }

  #take(body: string, attempt: number, response: ServerResponse): void {
    const { event_id } = JSON.parse(body);
    const received: Received = { event_id, attempt, body, status: null };
    this.received.push(received);
    const open = (this.#open.get(event_id) ?? 0) + 1;
    this.#open.set(event_id, open);
    if (open > 1) this.overlapping.push(event_id);
    response.on('close', () => this.#open.set(event_id, (this.#open.get(event_id) ?? 1) - 1));
    this.answer(received, (status) => {
      received.status = status;
      response.writeHead(status).end();
    });
  }

  of(event_id: string): Received[] {
    return this.received.filter((each) => each.event_id === event_id);
  }

  get delivered(): Set<string> {
    return new Set(this.received.filter(({ status }) => status === 204).map(({ event_id }) => event_id));
  }

  /** Event ids that came with more than one body. */
  get changed(): string[] {
    const bodies = new Map<string, string>();
    return this.received
      .filter(({ event_id, body }) => {
        const first = bodies.get(event_id) ?? body;
        bodies.set(event_id, first);
        return first !== body;
      })
      .map(({ event_id }) => event_id);
  }
}
