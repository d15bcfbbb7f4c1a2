import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

/** Where the programs of an administrator are, too. */
const PATH = `${process.env.PATH ?? ''}:/usr/sbin:/sbin`;

/** The addresses of the peers outside, which count as public. */
export const OUTSIDE = { ipv4: '198.51.99.2', ipv6: '2620:0:1::2' };
/** The node's address towards them. */
export const NODE = { ipv4: '198.51.99.1', ipv6: '2620:0:1::1' };

const TRAFFIC = join(import.meta.dirname, 'traffic.ts');
const DNS_SERVER = join(import.meta.dirname, 'dns-server.ts');

/** Runs a program to its end and returns what it wrote. */
export function runSync(...command: string[]): string {
  const [program = '', ...args] = command;
  return execFileSync(program, args, { env: { ...process.env, PATH }, stdio: 'pipe', encoding: 'utf8' });
}

/** A node in a namespace of its own, and the world outside it in another, with a link between them. */
export class Topology {
  readonly id = randomBytes(4).toString('hex');
  readonly node = `node-${this.id}`;
  readonly outside = `out-${this.id}`;
  readonly #children = new Set<() => void>();

  constructor() {
    runSync('ip', 'netns', 'add', this.node);
    runSync('ip', 'netns', 'add', this.outside);
    runSync(
      ...['ip', '-n', this.node, 'link', 'add', 'out', 'type', 'veth', 'peer', 'name', 'in'],
      ...['netns', this.outside],
    );
    for (const [namespace, name, { ipv4, ipv6 }] of [
      [this.node, 'out', NODE],
      [this.outside, 'in', OUTSIDE],
    ] as const) {
      runSync('ip', '-n', namespace, 'link', 'set', 'lo', 'up');
      runSync('ip', '-n', namespace, 'address', 'add', `${ipv4}/24`, 'dev', name);
      runSync('ip', '-n', namespace, 'address', 'add', `${ipv6}/64`, 'dev', name, 'nodad');
      runSync('ip', '-n', namespace, 'link', 'set', name, 'up');
    }
    for (const peer of [OUTSIDE.ipv4, OUTSIDE.ipv6]) {
      runSync('ip', '-n', this.node, 'route', 'add', 'default', 'via', peer);
    }
  }

  /** Starts the traffic program in a namespace; it is killed with the topology. */
  traffic(namespace: string, ...args: (string | number)[]): Traffic {
    const traffic = new Traffic(namespace, args.map(String));
    this.#children.add(() => traffic.kill());
    return traffic;
  }

  /** Starts the server outside, and resolves when it listens. */
  async serve(namespace = this.outside): Promise<Traffic> {
    const server = this.traffic(namespace, 'serve');
    await server.next();
    return server;
  }

  /** Starts a name server in a namespace, which knows the outside under every name. */
  async serveNames(namespace: string, host: string): Promise<void> {
    const server = new Traffic(namespace, [host, OUTSIDE.ipv4, OUTSIDE.ipv6], DNS_SERVER);
    this.#children.add(() => server.kill());
    await server.next();
  }

  /** Ends the programs and removes the namespaces. */
  remove(): void {
    for (const kill of this.#children) kill();
    runSync('ip', 'netns', 'delete', this.node);
    runSync('ip', 'netns', 'delete', this.outside);
  }
}

/** The traffic program, running in a namespace. */
export class Traffic {
  readonly #child;
  readonly #lines: AsyncIterator<string>;

  constructor(namespace: string, args: string[], program = TRAFFIC) {
    const command = ['netns', 'exec', namespace, process.execPath, program, ...args];
    this.#child = spawn('ip', command, {
      env: { ...process.env, PATH },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: this.#child.stdout as Readable });
    this.#lines = lines[Symbol.asyncIterator]();
  }

  /** The next thing that it tells. */
  async next<Told = Record<string, unknown>>(): Promise<Told> {
    const { done, value } = await this.#lines.next();
    if (done) throw new Error('the traffic program has ended');
    return JSON.parse(value) as Told;
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}
