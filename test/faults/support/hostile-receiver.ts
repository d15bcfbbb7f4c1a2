import { createHmac } from 'node:crypto';
import net from 'node:net';
import tls from 'node:tls';
import { Requests } from './requests.ts';
import type { Scene } from './scene.ts';
import { type Step, status } from './steps.ts';

/** One request as it came. */
export interface Received {
  at_ms: number;
  connection: number;
  headers: Map<string, string>;
  head: string;
  body: Buffer;
  event_id: string;
  event_type: string;
  attempt: number;
  is_signed: boolean;
  /** The status that was sent, noted before its first byte; null where none was. */
  answered: number | null;
}

export interface ReceiverSettings {
  secret?: string;
  host?: string;
  port?: number;
  tls?: { key: string; cert: string };
}

/** What becomes of a new connection before a byte is read. */
type Welcome = 'accept' | 'reset' | 'ignore';

/**
 * A consumer that does what a case asks of it: each request takes the next step of a script, the last one for good.
 * It records the raw requests and judges their signatures.
 */
export class HostileReceiver {
  readonly requests: Received[] = [];
  /** How many connections were made, and how many are open. */
  connections = 0;
  readonly #settings: ReceiverSettings;
  readonly #sockets = new Set<net.Socket>();
  #server: net.Server | null = null;
  #port: number;
  #script: Step[] = [status(200)];
  #order: 'once' | 'in turn' | 'per event' = 'once';
  readonly #taken = new Map<string, number>();
  #welcomes: Welcome[] = [];

  private constructor(settings: ReceiverSettings) {
    this.#settings = settings;
    this.#port = settings.port ?? 0;
  }

  static async start(scene: Pick<Scene, 'undo'>, settings: ReceiverSettings = {}): Promise<HostileReceiver> {
    const receiver = new HostileReceiver(settings);
    await receiver.up();
    scene.undo(() => receiver.down());
    return receiver;
  }

  get url(): string {
    const { host = '127.0.0.1' } = this.#settings;
    return `${this.#settings.tls ? 'https' : 'http'}://${host}:${this.#port}/hook`;
  }

  get port(): number {
    return this.#port;
  }

  get open_connections(): number {
    return this.#sockets.size;
  }

  /** From now on each request takes the next step, the last one again and again. */
  behave(...script: Step[]): this {
    this.#order = 'once';
    this.#script = script;
    this.#taken.clear();
    return this;
  }

  /** The same, with the steps counted for each event by itself. */
  behavePerEvent(...script: Step[]): this {
    this.behave(...script);
    this.#order = 'per event';
    return this;
  }

  /** The same, from the beginning again after the last step. */
  behaveInTurn(...script: Step[]): this {
    this.behave(...script);
    this.#order = 'in turn';
    return this;
  }

  /** What becomes of the next connections, one each; later ones are accepted. */
  welcome(...welcomes: Welcome[]): this {
    this.#welcomes = welcomes;
    return this;
  }

  of(event_id: string): Received[] {
    return this.requests.filter((request) => request.event_id === event_id);
  }

  /** Event ids that were answered with 2xx. */
  delivered(): Set<string> {
    const answered = this.requests.filter(
      ({ answered }) => answered !== null && answered >= 200 && answered < 300,
    );
    return new Set(answered.map(({ event_id }) => event_id));
  }

  /** Listens, on the port it had before. */
  async up(): Promise<void> {
    const server = this.#settings.tls ? tls.createServer(this.#settings.tls) : net.createServer();
    server.on(this.#settings.tls ? 'secureConnection' : 'connection', (socket: net.Socket) =>
      this.#take(socket),
    );
    server.on('tlsClientError', () => {});
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#port, this.#settings.host ?? '127.0.0.1', resolve);
    });
    this.#server = server;
    this.#port = (server.address() as net.AddressInfo).port;
  }

  /** Listens no more and resets every connection. */
  async down(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (!server) return;
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #take(socket: net.Socket): void {
    const connection = ++this.connections;
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    socket.on('error', () => {});
    socket.setNoDelay(true);
    const welcome = this.#welcomes.shift() ?? 'accept';
    if (welcome === 'reset') socket.resetAndDestroy();
    if (welcome !== 'accept') return;
    const requests = new Requests((head, body) => this.#answer(socket, connection, head, body));
    socket.on('data', (chunk: Buffer) => requests.push(chunk));
  }

  #answer(socket: net.Socket, connection: number, head: string, body: Buffer): void {
    const request = this.#record(connection, head, body);
    const key = this.#order === 'per event' ? request.event_id : '';
    const taken = this.#taken.get(key) ?? 0;
    this.#taken.set(key, taken + 1);
    const { length } = this.#script;
    const step = this.#script[
      this.#order === 'in turn' ? taken % length : Math.min(taken, length - 1)
    ] as Step;
    step({
      socket,
      request,
      answering: (code) => {
        request.answered = code;
      },
    });
  }

  #record(connection: number, head: string, body: Buffer): Received {
    const lines = head.split('\r\n').slice(1);
    const headers = new Map(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 1).trim(),
      ]),
    );
    const { secret } = this.#settings;
    const signature = headers.get('x-service-signature');
    const expected = secret ? createHmac('sha256', secret).update(body).digest('hex') : undefined;
    const request: Received = {
      at_ms: performance.now(),
      connection,
      head,
      headers,
      body,
      event_id: headers.get('ce-id') ?? '',
      event_type: headers.get('ce-type') ?? '',
      attempt: Number(headers.get('x-service-attempt')),
      is_signed: signature === expected,
      answered: null,
    };
    this.requests.push(request);
    return request;
  }
}
