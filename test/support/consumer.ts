import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { verify } from '../../src/webhook/signature.ts';
import { eventually } from './eventually.ts';

export interface Delivery {
  headers: IncomingHttpHeaders;
  body: string;
  /** The body, parsed. */
  event: { event_id: string; event_type: string; sequence: number; payload: Record<string, unknown> };
}

/** A real receiver: it keeps every delivery and answers 204, or what it is told. */
export class Consumer {
  readonly deliveries: Delivery[] = [];
  url = '';
  answer: (delivery: Delivery, response: ServerResponse) => void = (_, response) => {
    response.writeHead(204).end();
  };

  get types(): string[] {
    return this.deliveries.map(({ event }) => event.event_type);
  }

  of(event_type: string): Delivery[] {
    return this.deliveries.filter(({ event }) => event.event_type === event_type);
  }

  find(event_id: string): Delivery | undefined {
    return this.deliveries.find(({ event }) => event.event_id === event_id);
  }

  /** Resolves when something of this kind has come. */
  async arrival(event_type: string, count = 1): Promise<Delivery> {
    return eventually(
      () => {
        const delivery = this.of(event_type)[count - 1];
        if (!delivery) throw new Error(`no ${event_type} among ${this.types.join(', ')}`);
        return delivery;
      },
      { timeout: 60_000, interval: 10 },
    );
  }

  /** Deliveries whose signature is not right. */
  unsigned(secret: string): Delivery[] {
    return this.deliveries.filter(
      ({ headers, body }) => !verify(secret, body, headers['x-service-signature']),
    );
  }
}

/** One that ends with the present test. */
export async function startConsumer(host = '127.0.0.1'): Promise<Consumer> {
  const { consumer, close } = await openConsumer(host);
  onTestFinished(close);
  return consumer;
}

/** One that ends with `close`. */
export async function openConsumer(host = '127.0.0.1'): Promise<{ consumer: Consumer; close: () => void }> {
  const consumer = new Consumer();
  const server = createServer(async (request, response) => {
    const body = (await buffer(request).catch(() => Buffer.alloc(0))).toString('utf8');
    if (body === '') return;
    const delivery = { headers: request.headers, body, event: JSON.parse(body) };
    consumer.deliveries.push(delivery);
    consumer.answer(delivery, response);
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  consumer.url = `http://${host}:${(server.address() as AddressInfo).port}/hook`;
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { consumer, close };
}
