import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';

/** Connections that are passed on, from an address of a test's cluster to another of this machine. */
export class Forwarders {
  readonly #servers: Server[] = [];

  /** Listens at `host`, at any port unless one is given; returns the port. */
  async add(host: string, to: { host: string; port: number }, port = 0): Promise<number> {
    const server = createServer({ allowHalfOpen: true }, (from) => {
      const onward = connect({ ...to, allowHalfOpen: true });
      from.on('error', () => onward.destroy());
      onward.on('error', () => from.destroy());
      from.pipe(onward).pipe(from);
    });
    server.listen(port, host);
    await once(server, 'listening');
    this.#servers.push(server);
    return (server.address() as AddressInfo).port;
  }

  /** Listens no more; what is connected stays until either end closes. */
  stop(): void {
    for (const server of this.#servers.splice(0)) server.close().unref();
  }
}
