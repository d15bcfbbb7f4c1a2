import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { ADMIN_PATH, runSync } from '../run-sync.ts';
import { TellingProgram } from '../running-program.ts';

/** The addresses of the peers outside, which count as public. */
export const OUTSIDE = { ipv4: '198.51.99.2', ipv6: '2620:0:1::2' };
/** The node's address towards them. */
export const NODE = { ipv4: '198.51.99.1', ipv6: '2620:0:1::1' };

const TRAFFIC = join(import.meta.dirname, 'traffic.ts');
const DNS_SERVER = join(import.meta.dirname, 'dns-server.ts');

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
export class Traffic extends TellingProgram {
  constructor(namespace: string, args: string[], program = TRAFFIC) {
    const command = ['ip', 'netns', 'exec', namespace, process.execPath, program, ...args];
    super(command, { env: { PATH: ADMIN_PATH } });
  }
}
