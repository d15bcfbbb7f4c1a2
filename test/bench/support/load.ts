import { connect, type Socket } from 'node:net';
import { Messages } from './messages.ts';
import { nowMs, percentile } from './numbers.ts';
import { PAYLOAD_BYTES, payloadOf } from './payload.ts';
import { serve } from './program.ts';

export interface Load {
  url: string;
  connections: number;
  /** Ends after so long, or after so many publishes, or when every connection is gone. */
  duration_ms?: number;
  publishes?: number;
  /** One publish every so often in all; without it each connection sends as soon as it is answered. */
  interval_ms?: number;
  /** The number in the first payload; it counts up. */
  first?: number;
  /** Tell what became of each publish that was answered. */
  keeps?: boolean;
}

export interface Acknowledged {
  n: number;
  event_id: string;
  sent_ms: number;
  acknowledged_ms: number;
}

export interface LoadResult {
  acknowledged: number;
  refused: number;
  /** The highest number that was sent, plus one. */
  next: number;
  per_second: number;
  p50_ms: number;
  p99_ms: number;
  kept: Acknowledged[];
}

export type LoadVerbs = { publish: (load: Load) => Promise<LoadResult> };

const PATH = '/api/v1/webhook/publish';
const OPENING = '{"payload":';

/** Publishes over kept connections, one request at a time on each. */
class Run {
  readonly #load: Load;
  readonly #resolve: (result: LoadResult) => void;
  readonly #head: string;
  readonly #latencies_ms: number[] = [];
  readonly #kept: Acknowledged[] = [];
  readonly #idle: Connection[] = [];
  #open = 0;
  #next: number;
  #sent = 0;
  #refused = 0;
  #started_ms = 0;
  #is_over = false;

  constructor(load: Load, resolve: (result: LoadResult) => void) {
    this.#load = load;
    this.#resolve = resolve;
    this.#next = load.first ?? 0;
    const length = OPENING.length + PAYLOAD_BYTES + 1;
    this.#head =
      `POST ${PATH} HTTP/1.1\r\nHost: ${new URL(load.url).host}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${length}\r\n\r\n${OPENING}`;
  }

  async start(): Promise<void> {
    const { connections, duration_ms, interval_ms } = this.#load;
    const { hostname, port } = new URL(this.#load.url);
    const ready = Array.from({ length: connections }, () => {
      const connection = new Connection(connect({ host: hostname, port: Number(port), noDelay: true }), this);
      this.#open += 1;
      return connection;
    });
    await Promise.all(ready.map((connection) => connection.opened));
    this.#started_ms = nowMs();
    if (duration_ms !== undefined) setTimeout(() => this.#end(), duration_ms);
    if (interval_ms === undefined) for (const connection of ready) this.#send(connection);
    else {
      this.#idle.push(...ready);
      this.#tick(interval_ms, 0);
    }
  }

  #tick(interval_ms: number, count: number): void {
    if (this.#is_over) return;
    const connection = this.#idle.shift();
    if (connection) this.#send(connection);
    const due_ms = this.#started_ms + (count + 1) * interval_ms;
    setTimeout(() => this.#tick(interval_ms, count + 1), Math.max(0, due_ms - nowMs()));
  }

  #send(connection: Connection): void {
    if (this.#is_over) return;
    if (this.#load.publishes !== undefined && this.#sent >= this.#load.publishes) return;
    this.#sent += 1;
    const n = this.#next++;
    connection.send(n, `${this.#head}${payloadOf(n)}}`);
  }

  answered(connection: Connection, n: number, sent_ms: number, head: string, body: Buffer): void {
    const acknowledged_ms = nowMs();
    if (head.startsWith('202', 9)) {
      this.#latencies_ms.push(acknowledged_ms - sent_ms);
      if (this.#load.keeps) {
        const event_id = /"event_id":"([^"]+)"/.exec(body.toString('latin1'))?.[1] ?? '';
        this.#kept.push({ n, event_id, sent_ms, acknowledged_ms });
      }
    } else this.#refused += 1;
    if (this.#latencies_ms.length + this.#refused === this.#load.publishes) this.#end();
    else if (this.#load.interval_ms === undefined) this.#send(connection);
    else this.#idle.push(connection);
  }

  closed(): void {
    this.#open -= 1;
    if (this.#open === 0) this.#end();
  }

  #end(): void {
    if (this.#is_over) return;
    this.#is_over = true;
    const acknowledged = this.#latencies_ms.length;
    const took_ms = nowMs() - this.#started_ms;
    this.#resolve({
      acknowledged,
      refused: this.#refused,
      next: this.#next,
      per_second: (acknowledged / took_ms) * 1000,
      p50_ms: percentile(this.#latencies_ms, 0.5),
      p99_ms: percentile(this.#latencies_ms, 0.99),
      kept: this.#kept,
    });
    for (const connection of connections) connection.close();
    connections.clear();
  }
}

const connections = new Set<Connection>();

class Connection {
  readonly opened: Promise<void>;
  readonly #socket: Socket;
  #n = 0;
  #sent_ms = 0;

  constructor(socket: Socket, run: Run) {
    this.#socket = socket;
    const messages = new Messages((head, body) => run.answered(this, this.#n, this.#sent_ms, head, body));
    connections.add(this);
    socket.on('data', (chunk) => messages.push(chunk));
    socket.on('error', () => {});
    socket.on('close', () => run.closed());
    this.opened = new Promise((resolve) => {
      socket.once('connect', resolve);
      socket.once('close', () => resolve());
    });
  }

  send(n: number, request: string): void {
    this.#n = n;
    this.#sent_ms = nowMs();
    this.#socket.write(request, 'latin1');
  }

  close(): void {
    this.#socket.destroy();
  }
}

serve<LoadVerbs>({ publish: (load) => new Promise((resolve) => void new Run(load, resolve).start()) });
