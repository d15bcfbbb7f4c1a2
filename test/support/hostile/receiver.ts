import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { crc32 } from 'node:zlib';
import { verify } from '../../../src/webhook/signature.ts';
import { nowMs } from '../../bench/support/numbers.ts';
import { serve } from '../../bench/support/program.ts';
import { Random } from '../random.ts';

export interface Receiving {
  secret: string;
  seed: number;
  /** Share of the requests that are treated badly. */
  badly: number;
}

export interface ReceivedEvent {
  event_id: string;
  /** Checksum of the payload's text. */
  checksum: number;
  /** Each arrival was signed, and had the same bytes. */
  is_whole: boolean;
  /** When it first came, on the clock that all processes of a machine share. */
  arrived_ms: number;
  arrivals: number;
  event_type: string;
}

export type ReceiverVerbs = {
  listen: (receiving: Receiving) => Promise<{ url: string }>;
  /** From now on every request is answered well. */
  heal: (input: null) => void;
  received: (input: null) => ReceivedEvent[];
};

const PAYLOAD = Buffer.from('"payload":');
const received = new Map<string, ReceivedEvent & { whole: number }>();
let given: Receiving = { secret: '', seed: 1, badly: 0 };
let random = new Random(1);
let server: Server;

/** What a bad receiver does with a request; none of it is a terminal answer. */
const BAD: ((response: ServerResponse) => void)[] = [
  (response) => response.writeHead(500).end('no'),
  (response) => response.writeHead(503, { 'retry-after': '1' }).end(),
  (response) => response.writeHead(429, { 'retry-after': 'soon' }).end(),
  (response) => response.writeHead(408).end('x'.repeat(100_000)),
  (response) => response.socket?.resetAndDestroy(),
  (response) => response.socket?.end('HTTP/1.1 2'),
  (response) => response.socket?.end('SSH-2.0-OpenSSH_9.2\r\n'),
  (response) => response.socket?.end(`${'HTTP/1.1 103 Early\r\n\r\n'.repeat(1_000)}HTTP/1.1 200 OK\r\n\r\n`),
  (response) => void setTimeout(() => response.writeHead(204).end(), random.below(3_000)),
  // Taken, whatever becomes of the body.
  (response) => dripping(response.writeHead(200)),
  (response) => response.writeHead(200, { 'content-length': '1000000000' }).end('x'.repeat(1_000_000)),
];

async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await buffer(request);
  const event_id = String(request.headers['ce-id']);
  const whole = crc32(body);
  const known = received.get(event_id);
  if (known) {
    known.arrivals += 1;
    known.is_whole &&= known.whole === whole;
  } else {
    const start = body.indexOf(PAYLOAD) + PAYLOAD.length;
    received.set(event_id, {
      ...{ event_id, whole, arrived_ms: nowMs(), arrivals: 1 },
      checksum: crc32(body.subarray(start, body.length - 1)),
      event_type: String(request.headers['ce-type']),
      is_whole: verify(given.secret, body, request.headers['x-service-signature'] as string),
    });
  }
  if (random.chance(given.badly)) random.pick(BAD)(response);
  else response.writeHead(204).end();
}

function dripping(response: ServerResponse): void {
  const timer = setInterval(() => response.write('x'), 100);
  response.on('error', () => {});
  response.once('close', () => clearInterval(timer));
}

function listen(receiving: Receiving): Promise<{ url: string }> {
  given = receiving;
  random = new Random(receiving.seed);
  server = createServer((request, response) => {
    response.on('error', () => {});
    take(request, response).catch(() => response.destroy());
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () =>
      resolve({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` }),
    );
  });
}

serve<ReceiverVerbs>({
  listen,
  heal: () => {
    given = { ...given, badly: 0 };
  },
  received: () => [...received.values()].map(({ whole: _whole, ...event }) => event),
});
