import { once } from 'node:events';
import { linkSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { join } from 'node:path';
import { createServer, type TLSSocket } from 'node:tls';
import { type Clock, sleep } from '../../../base/clock.ts';
import { connectControl } from '../../control-client.ts';
import { SOCKET, TOKEN } from '../../rootfs.ts';
import {
  CONTROL_PROTOCOL,
  KEEPER_PROTOCOL,
  KEEPER_TLS,
  KEY_IDENTITY,
  RUN_FOLDER,
} from './keeper-protocol.ts';
import { type KeeperPlaces, KeeperRoutes } from './keeper-routes.ts';

/** Processes of the sandbox can connect as well: those who do not prove the key soon are dropped. */
const HANDSHAKE_TIMEOUT_MS = 5_000;
const CONNECTIONS_MAX = 4_096;
const KEEP_ALIVE_MS = 30_000;

const POLL_MS = 10;
const SOCKET_MODE = 0o600;
const OWN_FOLDER = 'own';

/**
 * The keeper beside a sandbox in its Pod: it serves the daemon's control socket, and the volume when the daemon has ended,
 * to whoever proves to have the Pod's key. Source: contract section 7, "Kubernetes".
 */
export class Keeper {
  readonly #key: Buffer;
  readonly #socket: ControlSocket;
  readonly #routes: KeeperRoutes;

  constructor(key: Buffer, places: KeeperPlaces, clock: Clock) {
    this.#key = key;
    this.#socket = new ControlSocket(places.control, clock);
    this.#routes = new KeeperRoutes(places, clock);
  }

  /** Listens on every address of the Pod; it works until its process ends. Returns the port. */
  async start(port: number): Promise<number> {
    const http = createHttpServer({ requestTimeout: 0 }, (request, response) => {
      void this.#routes.answer(request, response);
    });
    const options = {
      ...KEEPER_TLS,
      ALPNProtocols: [CONTROL_PROTOCOL, KEEPER_PROTOCOL],
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      allowHalfOpen: true,
      noDelay: true,
      // The tunnels of a manager that is gone without a word must not be waited at.
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_MS,
      pskCallback: (_socket: TLSSocket, identity: string) => (identity === KEY_IDENTITY ? this.#key : null),
    };
    const server = createServer(options, (socket) => {
      socket.on('error', () => {}); // 'close' follows
      if (socket.alpnProtocol === CONTROL_PROTOCOL) void this.#pass(socket);
      else if (socket.alpnProtocol === KEEPER_PROTOCOL) http.emit('connection', socket);
      else socket.destroy();
    });
    server.maxConnections = CONNECTIONS_MAX;
    server.on('tlsClientError', () => {});
    server.listen(port);
    await once(server, 'listening');
    // At once, not when somebody connects: nothing may run in the sandbox before.
    void this.#socket.taken();
    return (server.address() as { port: number }).port;
  }

  /** Joins a connection with one to the daemon, once that listens. */
  async #pass(socket: TLSSocket): Promise<void> {
    const path = await this.#socket.taken();
    if (socket.destroyed) return;
    try {
      const daemon = await connectControl(path);
      socket.pipe(daemon);
      daemon.pipe(socket);
      socket.once('close', () => daemon.destroy());
      daemon.once('close', () => socket.destroySoon());
    } catch {
      socket.destroy(); // the daemon has died
    }
  }
}

/**
 * The daemon's control socket, taken out of the sandbox's reach before anything runs there: it gets a name in a folder
 * that the sandbox does not see, and loses the one inside, as the token does. `folder`: the control volume.
 */
class ControlSocket {
  readonly #folder: string;
  readonly #clock: Clock;
  #taken: Promise<string> | null = null;

  constructor(folder: string, clock: Clock) {
    this.#folder = folder;
    this.#clock = clock;
  }

  /** The path of the socket, once the daemon listens on it. */
  taken(): Promise<string> {
    this.#taken ??= this.#take();
    return this.#taken;
  }

  async #take(): Promise<string> {
    const inside = join(this.#folder, RUN_FOLDER, SOCKET);
    const own = join(this.#folder, OWN_FOLDER);
    mkdirSync(own, { recursive: true, mode: 0o700 });
    const path = join(own, SOCKET);
    while (!isListening(inside)) await sleep(this.#clock, POLL_MS);
    rmSync(path, { force: true });
    linkSync(inside, path);
    rmSync(inside);
    rmSync(join(this.#folder, RUN_FOLDER, TOKEN), { force: true });
    return path;
  }
}

/** A socket has its name before anything listens on it; the daemon sets the mode once it does. */
function isListening(socket: string): boolean {
  const stat = statSync(socket, { throwIfNoEntry: false });
  return stat?.isSocket() === true && (stat.mode & 0o777) === SOCKET_MODE;
}
