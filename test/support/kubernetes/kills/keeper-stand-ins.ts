import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { connect, TLSSocket } from 'node:tls';
import type { ClusterClient } from '../../../../src/runtime/kubernetes/api/cluster-client.ts';
import type { Pod, Secret } from '../../../../src/runtime/kubernetes/api/objects.ts';
import {
  CONTROL_PROTOCOL,
  KEEPER_PORT,
  KEEPER_PROTOCOL,
  KEEPER_TLS,
  KEY_IDENTITY,
} from '../../../../src/runtime/kubernetes/keeper/keeper-protocol.ts';
import { KEY_FILE } from '../../../../src/runtime/kubernetes/manifests.ts';
import type { KillSteps } from './kill-steps.ts';

/** A Pod, and the secrets that it mounts. */
type MountingPod = Pod & { spec: { volumes?: { secret?: { secretName: string } }[] } };

/** Stands between a manager and the keepers of all Pods: each has an address on loopback in the place of its own. */
export class KeeperStandIns {
  readonly #client: ClusterClient;
  readonly #steps: KillSteps;
  /** The second number of the addresses: another manager's stand-ins have others. */
  readonly #net: number;
  readonly #keys = new Map<string, Buffer>();
  readonly #servers = new Map<string, Promise<Server>>();
  readonly #sockets = new Set<Socket>();

  constructor(client: ClusterClient, steps: KillSteps, net: number) {
    this.#client = client;
    this.#steps = steps;
    this.#net = net;
  }

  /** Where the keeper of a Pod, at its own address, is to be found. */
  async addressOf({ metadata, spec, status }: MountingPod): Promise<string> {
    const host = status?.podIP as string;
    const name = spec.volumes?.find(({ secret }) => secret)?.secret?.secretName ?? metadata.name;
    const secret = await this.#client.get<Secret>(this.#client.path('secrets', name));
    const key = secret?.data?.[KEY_FILE];
    if (key !== undefined) this.#keys.set(host, Buffer.from(key, 'base64'));
    const stand_in = host.replace(/^\d+\.\d+/, `127.${this.#net}`);
    if (!this.#servers.has(host)) this.#servers.set(host, this.#listen(host, stand_in));
    await this.#servers.get(host);
    return stand_in;
  }

  /** Ends all connections. */
  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    for (const server of await Promise.all(this.#servers.values())) server.close();
  }

  async #listen(host: string, stand_in: string): Promise<Server> {
    const server = createServer({ allowHalfOpen: true }, (raw) => {
      this.#sockets.add(raw);
      raw.on('error', () => {}).once('close', () => this.#sockets.delete(raw));
      this.#join(host, raw).catch(() => raw.destroy());
    });
    server.listen(KEEPER_PORT, stand_in);
    await once(server, 'listening');
    return server;
  }

  async #join(host: string, raw: Socket): Promise<void> {
    // Whoever connects learns at once that there is no keeper, as without a stand-in.
    (await this.#keeper(host, KEEPER_PROTOCOL)).destroy();
    const psk = this.#keys.get(host) ?? null;
    const manager = new TLSSocket(raw, {
      ...KEEPER_TLS,
      ...{ isServer: true, ALPNProtocols: [CONTROL_PROTOCOL, KEEPER_PROTOCOL], allowHalfOpen: true },
      pskCallback: (_: TLSSocket, identity: string) => (identity === KEY_IDENTITY ? psk : null),
    } as ConstructorParameters<typeof TLSSocket>[1]);
    manager.on('error', () => raw.destroy());
    await once(manager, 'secure');
    const protocol = manager.alpnProtocol as string;
    const keeper = await this.#keeper(host, protocol);
    manager.once('close', () => keeper.destroy());
    keeper.on('error', () => manager.destroy()).once('close', () => manager.destroySoon());
    const asked = await piece(manager);
    const step = this.#stepOf(asked.toString('latin1'), protocol);
    if (step !== null && (await this.#steps.kills(step, 'before'))) return void raw.destroy();
    keeper.write(asked);
    manager.pipe(keeper);
    const answer = await piece(keeper);
    if (step !== null && (await this.#steps.kills(step, 'after'))) return void raw.destroy();
    manager.write(answer);
    keeper.pipe(manager);
  }

  /** Null for a question that changes nothing. */
  #stepOf(head: string, protocol: string): string | null {
    const [, method, path] = /^([A-Z]+) (?:\/api\/v1)?([^ ?]+)/.exec(head) ?? [];
    if (method === undefined || (method === 'GET' && protocol === CONTROL_PROTOCOL)) return null;
    const whom = protocol === CONTROL_PROTOCOL ? 'daemon' : 'keeper';
    return this.#steps.begin(`${method} ${path} of the ${whom}`);
  }

  async #keeper(host: string, protocol: string): Promise<TLSSocket> {
    const psk = this.#keys.get(host);
    if (psk === undefined) throw new Error(`there is no key for ${host}`);
    const socket = connect({
      ...KEEPER_TLS,
      ...{ host, port: KEEPER_PORT, ALPNProtocols: [protocol], allowHalfOpen: true },
      pskCallback: () => ({ psk, identity: KEY_IDENTITY }),
      checkServerIdentity: () => undefined,
    });
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    await once(socket, 'secureConnect');
    return socket;
  }
}

/** The first piece of what comes; rejects if there is none. */
async function piece(socket: Socket): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  socket.once('close', () => reject(new Error('closed')));
  socket.once('data', (chunk) => {
    socket.pause();
    resolve(chunk);
  });
  return promise;
}
