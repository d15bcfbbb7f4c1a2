import { chmodSync, existsSync, lstatSync, unlinkSync } from 'node:fs';
import type { Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { listenOn, serverOf } from '../base/engine/node-http.ts';
import type { HttpApp } from '../base/http/app.ts';
import { Connections, createListener, type Router } from '../base/http/listener.ts';
import { EGRESS_PROTOCOL, PORT_PROTOCOL } from '../contract/control-socket.ts';
import { StartError } from '../contract/errors.ts';

/** The platform has no IPv6 loopback: listening on it is skipped. */
const NO_IPV6 = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT']);
/** Attempts to find a port that is free on both loopback addresses. */
const FREE_PORT_TRIES = 20;

/** The addresses on which the daemon's application is served. */
export class Listeners {
  /** The connections of all addresses. */
  readonly connections = new Connections();
  readonly #servers: Server[] = [];
  #control: Server | null = null;
  #addresses: string[] = [];
  #port = 0;

  /** Makes the application report the progress of its requests, which decides what connection is closed first. */
  observe(app: HttpApp): void {
    const connections = this.connections;
    app.addHook('preHandler', (request, _reply, done) => {
      connections.requestComplete(request.raw.socket);
      done();
    });
    app.addHook('onResponse', (request, _reply, done) => {
      connections.answered(request.raw.socket);
      done();
    });
  }

  /** The TCP port; 0 before `listen`. */
  get port(): number {
    return this.#port;
  }

  /** The IP addresses that are currently bound. */
  get addresses(): string[] {
    return this.#addresses;
  }

  /** Whether a connection came over the control socket. */
  readonly isControl = (socket: Socket): boolean => {
    return this.#control !== null && serverOf(socket) === this.#control;
  };

  /**
   * Serves `router` on the addresses of `host`. Throws StartError if one is in use. `localhost` means 127.0.0.1 and, if there is
   * IPv6, [::1], whatever the name resolves to. Source: contract section 4, `--host`.
   */
  async listen(router: Router, host: string, port: number): Promise<void> {
    if (host !== 'localhost') return this.#listen(router, host, port, host);
    for (let tries = 1; ; tries++) {
      await this.#listen(router, '127.0.0.1', port, host);
      try {
        return await this.#listen(router, '::1', this.#port, host);
      } catch (error) {
        const { code } = (error as { cause?: NodeJS.ErrnoException }).cause ?? {};
        if (NO_IPV6.has(code ?? '')) return;
        await this.#closeServers();
        if (port !== 0 || tries === FREE_PORT_TRIES) throw error;
      }
    }
  }

  async #listen(router: Router, address: string, port: number, host: string): Promise<void> {
    const server = createListener(router, this.connections);
    await listening(server, () => listenOn(server, address, port)).catch((error: NodeJS.ErrnoException) => {
      const why = error.code === 'EADDRINUSE' ? 'is in use by another program' : `: ${error.message}`;
      throw new StartError(`--port ${port} on ${host}${why.startsWith(':') ? '' : ' '}${why}`, 1, error);
    });
    this.#servers.push(server);
    this.#port = (server.address() as AddressInfo).port;
    this.#addresses.push((server.address() as AddressInfo).address);
  }

  /** Also serves `router` on a Unix socket with mode 0600, replacing a stale one. Throws StartError. */
  async listenOnSocket(router: Router, path: string): Promise<void> {
    if (existsSync(path)) await removeStale(path);
    // A manager passes requests of third parties through it: one of them may hide another.
    const upgrades = ['websocket', EGRESS_PROTOCOL, PORT_PROTOCOL];
    const server = createListener(router, this.connections, { one_request: true, upgrades });
    await listening(server, () => server.listen({ path })).catch((error: Error) => {
      throw new StartError(`--control-socket ${path}: ${error.message}`);
    });
    chmodSync(path, 0o600);
    this.#servers.push(server);
    this.#control = server;
  }

  /** Stops listening and closes every connection. Idempotent. */
  async stop(): Promise<void> {
    await this.#closeServers();
    this.connections.close();
  }

  async #closeServers(): Promise<void> {
    const servers = this.#servers.splice(0);
    this.#addresses = [];
    for (const server of servers) server.close();
  }
}

function listening(server: Server, listen: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.once('listening', () => {
      server.off('error', reject);
      resolve();
    });
    listen();
  });
}

async function removeStale(path: string): Promise<void> {
  if (!lstatSync(path).isSocket())
    throw new StartError(`--control-socket ${path} exists and is not a socket`);
  const is_taken = await new Promise<boolean>((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
  if (is_taken) throw new StartError(`--control-socket ${path} is in use by another program`);
  unlinkSync(path);
}
