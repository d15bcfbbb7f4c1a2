import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { execa } from 'execa';
import { Client } from '../manager/manager-client.ts';
import { MANAGER, ManagerProgram } from '../manager-program.ts';
import { OUTSIDE, Topology } from '../network/topology.ts';
import { runSync } from '../run-sync.ts';

const SCOPES = ['sandboxes:write', 'quota:read', 'usage:read', 'webhooks:read'];
/** Room for 16 sandboxes and another team's, not the machine's: other tests have sandboxes, too. */
const NODE_OPTIONS = ['--node-memory', '8Gi', '--node-disk', '12Gi', '--node-cpus', '16'];
const GONE_WITHIN_MS = 120_000;
const GONE_LOOK_MS = 200;
const READY_WITHIN_MS = 60_000;

const PROGRAM = readFileSync(join(import.meta.dirname, 'hostile.py'), 'utf8');
const [PROGRAM_PATH, COUNTS_PATH] = ['/root/hostile.py', '/root/counts'];
const PEER = OUTSIDE.ipv4;

/**
 * The built manager with real sandboxes and metered networks, on a node in a network namespace of its own. This process is
 * on another machine, as its sandboxes see it: `here` is its address.
 */
export class NeighbourNode {
  readonly manager: ManagerProgram;
  readonly topology: Topology;
  readonly folder: string;
  readonly here: string;
  readonly #program: string;

  private constructor(manager: ManagerProgram, topology: Topology, folder: string, program: string) {
    this.manager = manager;
    this.topology = topology;
    this.folder = folder;
    this.here = addressesOf(topology).here;
    this.#program = program;
  }

  /** `folder`: of its own. `onEnd` is given what removes everything, the last first. `program`: another build's. */
  static async start(
    folder: string,
    onEnd: (undo: () => void | Promise<void>) => void,
    program = MANAGER,
  ): Promise<NeighbourNode> {
    const topology = new Topology();
    onEnd(() => topology.remove());
    const { here, node } = addressesOf(topology);
    link(topology, here, node);
    await topology.serve();
    const manager = await ManagerProgram.start(
      [
        ...['--listen', `${node}:0`, '--runtime', 'local', '--network', 'metered', ...NODE_OPTIONS],
        ...['--data-dir', join(folder, 'data'), '--database', `sqlite:${join(folder, 'manager.db')}`],
        ...['--secret-key-file', join(folder, 'key'), '--allow-webhook-cidr', `${here}/32`],
      ],
      READY_WITHIN_MS,
      { program, network_namespace: topology.node },
    );
    onEnd(() => manager.end('SIGTERM'));
    return new NeighbourNode(manager, topology, folder, program);
  }

  /** A client of a team, all of whose sandboxes are gone before the manager ends. */
  async client(team_id: string, onEnd: (undo: () => void | Promise<void>) => void): Promise<Client> {
    const scopes = SCOPES.flatMap((scope) => ['--scope', scope]);
    const database = ['--database', `sqlite:${join(this.folder, 'manager.db')}`];
    const command = [this.#program, 'token', 'create', '--team', team_id, ...scopes, ...database];
    const { stdout } = await execa(process.execPath, command);
    const client = new Client(() => this.manager.url, stdout);
    onEnd(() => this.#deleteAll(client));
    return client;
  }

  get #data_dir(): string {
    return join(this.folder, 'data');
  }

  /** Claims a sandbox and puts the hostile program there. */
  async armed(client: Client, config: object, behaviours: string[]): Promise<HostileSandbox> {
    const sandbox_id = await client.claim(config);
    const path = `/api/v1/sandboxes/${sandbox_id}/files?path=${PROGRAM_PATH}`;
    const { status } = await client.call('PUT', path, PROGRAM, {
      'content-type': 'application/octet-stream',
    });
    if (status >= 300) throw new Error(`the upload of the hostile program was answered ${status}`);
    const folder = join(this.#data_dir, sandbox_id);
    const root = existsSync(join(folder, 'disk')) ? join(folder, 'disk/rootfs') : join(folder, 'rootfs');
    return new HostileSandbox(client, sandbox_id, behaviours, join(root, COUNTS_PATH));
  }

  /** A table of the kernel's network that its node has for itself. */
  networkSetting(name: string): number {
    const path = `/proc/sys/net/${name}`;
    return Number(runSync('nsenter', `--net=/run/netns/${this.topology.node}`, 'cat', path));
  }

  async #deleteAll(client: Client): Promise<void> {
    const ids: string[] = [];
    const end_ms = performance.now() + GONE_WITHIN_MS;
    while (performance.now() < end_ms) {
      const { data } = await client.get('/api/v1/sandboxes?limit=200');
      const live = (data?.sandboxes ?? []).map(({ id }: { id: string }) => id);
      ids.push(...live);
      for (const id of live) await client.call('DELETE', `/api/v1/sandboxes/${id}`);
      if (data && !readdirSync(this.#data_dir).some((name) => ids.includes(name))) return;
      await sleep(GONE_LOOK_MS);
    }
    throw new Error('sandboxes are left');
  }
}

/** Addresses of a link between this process and a node: a network of its own for each. */
function addressesOf({ id }: Topology): { here: string; node: string } {
  const [a = 0, b = 0, c = 0] = Buffer.from(id, 'hex');
  const prefix = `10.${64 + (a % 64)}.${b}`;
  const base = c & 0xfc;
  return { here: `${prefix}.${base + 1}`, node: `${prefix}.${base + 2}` };
}

function link({ id, node: namespace }: Topology, here: string, node: string): void {
  const name = `here-${id}`;
  const peer = ['peer', 'name', 'here', 'netns', namespace];
  runSync('ip', 'link', 'add', name, 'type', 'veth', ...peer);
  runSync('ip', 'address', 'add', `${here}/30`, 'dev', name);
  runSync('ip', 'link', 'set', name, 'up');
  runSync('ip', '-n', namespace, 'address', 'add', `${node}/30`, 'dev', 'here');
  runSync('ip', '-n', namespace, 'link', 'set', 'here', 'up');
}

/** What a behaviour of a hostile sandbox has come to. */
export interface Attempted {
  behaviour: string;
  taken: number;
  refused: number;
  started: number;
}

/** A sandbox with the hostile program. */
export class HostileSandbox {
  readonly id: string;
  readonly #client: Client;
  readonly #behaviours: string[];
  readonly #counts: string;

  constructor(client: Client, id: string, behaviours: string[], counts: string) {
    this.#client = client;
    this.id = id;
    this.#behaviours = behaviours;
    this.#counts = counts;
  }

  /** Starts the program, which ends with the sandbox. */
  async begin(): Promise<void> {
    const command = ['python3', PROGRAM_PATH, COUNTS_PATH, PEER, ...this.#behaviours];
    const path = `/api/v1/sandboxes/${this.id}/processes`;
    const { status, error } = await this.#client.post(path, { command, restart: { policy: 'always' } });
    if (status !== 201) throw new Error(`the start of the hostile program: ${status} ${error?.message}`);
  }

  /** What its behaviours have come to; a sandbox that has ended says nothing. */
  attempted(): Attempted[] {
    if (!existsSync(this.#counts)) return [];
    const counts = readFileSync(this.#counts);
    return this.#behaviours.map((behaviour, place) => {
      const [taken = 0, refused = 0, started = 0] = [0, 8, 16].map((offset) =>
        counts.length < (place + 1) * 24 ? 0 : Number(counts.readBigUInt64LE(place * 24 + offset)),
      );
      return { behaviour, taken, refused, started };
    });
  }
}
