import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { verify } from '../../../src/webhook/signature.ts';
import { Messages } from './messages.ts';
import { nowMs } from './numbers.ts';
import { serve } from './program.ts';

export interface Consuming {
  /** 0 picks one. */
  port: number;
  /** Answers so much later. */
  delay_ms?: number;
  /** Tell of each request when it came; with a secret also whether it was signed and which number it carried. */
  keeps?: boolean;
  secret?: string;
  /** With Node's HTTP server, as consumers are written; otherwise with as little as an answer takes. */
  is_library?: boolean;
}

export interface Received {
  event_id: string;
  /** Of each arrival, in order. */
  arrived_ms: number[];
  /** The payload's number; null for the daemon's own events. */
  n: number | null;
  sequence: number;
  /** Each body had a signature that fits, and all had the same. */
  is_whole: boolean;
}

export interface Counted {
  requests: number;
  first_ms: number;
  last_ms: number;
}

export type ConsumerVerbs = {
  listen: (consuming: Consuming) => Promise<{ url: string }>;
  /** Listens no more and closes every connection. */
  close: (input: null) => Promise<void>;
  /** What came since the last time this was asked. */
  count: (input: null) => Counted;
  received: (input: null) => Received[];
};

const sockets = new Set<Socket>();
let server: Server | null = null;

const ANSWER = 'HTTP/1.1 204 No Content\r\n\r\n';
const received = new Map<string, Received & { signature: string }>();
let counted: Counted = { requests: 0, first_ms: 0, last_ms: 0 };

function listen(consuming: Consuming): Promise<{ url: string }> {
  const { port, delay_ms = 0, keeps = false, secret, is_library = false } = consuming;
  const take = (socket: Socket, head: string, body: Buffer) => {
    const arrived_ms = noteArrival();
    if (keeps) keep(head, body, arrived_ms, secret);
    if (delay_ms === 0) socket.write(ANSWER, 'latin1');
    else setTimeout(() => socket.write(ANSWER, 'latin1'), delay_ms);
  };
  const listening = is_library
    ? libraryServer()
    : createServer({ noDelay: true }, (socket) => {
        const messages = new Messages((head, body) => take(socket, head, body));
        socket.on('data', (chunk) => messages.push(chunk));
        socket.on('error', () => {});
      });
  listening.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server = listening;
  return new Promise((resolve, reject) => {
    listening.once('error', reject);
    listening.listen(port, '127.0.0.1', () => {
      const address = listening.address() as { port: number };
      resolve({ url: `http://127.0.0.1:${address.port}/hook` });
    });
  });
}

/** Reads each body and answers. */
function libraryServer(): Server {
  return createHttpServer(async (request, response) => {
    await buffer(request);
    noteArrival();
    response.writeHead(204).end();
  });
}

/** Counts a request; gives when it came. */
function noteArrival(): number {
  const arrived_ms = nowMs();
  counted.requests += 1;
  counted.last_ms = arrived_ms;
  if (counted.requests === 1) counted.first_ms = arrived_ms;
  return arrived_ms;
}

function close(): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    if (server) server.close(() => resolve());
    else resolve();
  });
  for (const socket of sockets) socket.destroy();
  return closed;
}

function keep(head: string, body: Buffer, arrived_ms: number, secret: string | undefined): void {
  const event_id = header(head, 'ce-id');
  const signature = header(head, 'x-service-signature');
  const is_signed = secret === undefined || verify(secret, body, signature);
  const known = received.get(event_id);
  if (known) {
    known.arrived_ms.push(arrived_ms);
    known.is_whole &&= is_signed && known.signature === signature;
    return;
  }
  const text = body.toString('utf8');
  const n = /"payload":\{"n":"(\d+)"/.exec(text)?.[1];
  received.set(event_id, {
    event_id,
    arrived_ms: [arrived_ms],
    n: n === undefined ? null : Number(n),
    sequence: Number(/"sequence":(\d+)/.exec(text)?.[1]),
    is_whole: is_signed && text.startsWith(`{"event_id":"${event_id}"`),
    signature,
  });
}

function header(head: string, name: string): string {
  return new RegExp(`^${name}: *(.*?)\\r?$`, 'im').exec(head)?.[1] ?? '';
}

serve<ConsumerVerbs>({
  listen,
  close,
  count: () => {
    const now = counted;
    counted = { requests: 0, first_ms: 0, last_ms: 0 };
    return now;
  },
  received: () => [...received.values()],
});
