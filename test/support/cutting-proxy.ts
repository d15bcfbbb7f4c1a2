import { once } from 'node:events';
import { type AddressInfo, createConnection, createServer, type Server, type Socket } from 'node:net';
import { endTogether } from './joined-sockets.ts';

/** When all connections are cut: before a statement reaches the server, or after it was carried out. */
export type Moment = 'before' | 'after';

const QUERY = 0x51;
const SYNC = 0x53;
const READY_FOR_QUERY = 0x5a;

/** Stands between a program and PostgreSQL and cuts every connection at a statement that a test chooses. */
export class CuttingProxy {
  readonly #server: Server;
  readonly #target_port: number;
  readonly #sockets = new Set<Socket>();
  #cut: { left: number; moment: Moment } | null = null;

  private constructor(target_port: number) {
    this.#target_port = target_port;
    this.#server = createServer((client) => this.#join(client));
  }

  /** A proxy for the server of a database URL. */
  static async start(url: string): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(Number(new URL(url).port));
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  /** The same URL by way of the proxy. */
  urlOf(url: string): string {
    const by_proxy = new URL(url);
    by_proxy.port = String((this.#server.address() as AddressInfo).port);
    return by_proxy.href;
  }

  /** Cuts at the n-th statement from now on, once. */
  cutAt(n: number, moment: Moment): void {
    this.#cut = { left: n, moment };
  }

  /** Whether the cut has been made; one that has not been is called off. */
  disarm(): boolean {
    const is_made = this.#cut === null;
    this.#cut = null;
    return is_made;
  }

  stop(): void {
    this.#cutAll();
    this.#server.close();
  }

  #cutAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #join(client: Socket): void {
    const server = createConnection(this.#target_port, '127.0.0.1');
    endTogether(client, server, this.#sockets);
    let cuts_at_answer = false;
    const asked = new Messages(false, (type) => {
      if (type !== QUERY && type !== SYNC) return false;
      if (!this.#cut || --this.#cut.left > 0) return false;
      cuts_at_answer = this.#cut.moment === 'after';
      this.#cut = null;
      return !cuts_at_answer;
    });
    const answered = new Messages(true, (type) => type === READY_FOR_QUERY && cuts_at_answer);
    client.on('data', (chunk) => (asked.cuts(chunk) ? this.#cutAll() : server.write(chunk)));
    server.on('data', (chunk) => (answered.cuts(chunk) ? this.#cutAll() : client.write(chunk)));
  }
}

/** The messages of one direction of a connection. */
class Messages {
  readonly #cutsAt: (type: number) => boolean;
  /** The first message of a client has no type. */
  #is_typed: boolean;
  #rest = Buffer.alloc(0);

  constructor(is_typed: boolean, cutsAt: (type: number) => boolean) {
    this.#is_typed = is_typed;
    this.#cutsAt = cutsAt;
  }

  /** Whether a message in it is one to cut at. */
  cuts(chunk: Buffer): boolean {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    for (;;) {
      const header = this.#is_typed ? 5 : 4;
      if (this.#rest.length < header) return false;
      const length = this.#rest.readUInt32BE(header - 4) + header - 4;
      if (this.#rest.length < length) return false;
      const type = this.#is_typed ? (this.#rest[0] as number) : 0;
      this.#is_typed = true;
      this.#rest = this.#rest.subarray(length);
      if (this.#cutsAt(type)) return true;
    }
  }
}
