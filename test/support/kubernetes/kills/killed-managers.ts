import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { clusterAccess } from '../../../../src/runtime/kubernetes/api/config-file.ts';
import { firstToken, ManagerProgram } from '../../manager-program.ts';
import { scratchFolder } from '../../scratch.ts';
import { HOST_ADDRESS, IMAGE, NAMESPACE, type TestCluster } from '../cluster.ts';
import type { Moment } from './kill-steps.ts';
import { KillingProxy } from './killing-proxy.ts';

/** Until it is ready, a manager resolves what another has left, which may take the end of a Pod. */
const READY_MS = 240_000;
/** The second number of the addresses of the first one's keepers. */
const NET = 100 + (process.pid % 50);

/** Where managers keep what they share; `redis`: null for one that shares nothing. */
export interface ManagerStores {
  database: string;
  redis: string | null;
}

// biome-ignore lint/suspicious/noExplicitAny: what the API answers is what a test looks at.
type Answered = any;

/** One or two managers of a cluster, of which the first is killed. They are gone when the test has ended. */
export class KilledManagers {
  readonly proxies: KillingProxy[];
  readonly #options: string[][];
  readonly #programs: ManagerProgram[] = [];
  readonly #token: string;

  private constructor(proxies: KillingProxy[], options: string[][], token: string) {
    this.proxies = proxies;
    this.#options = options;
    this.#token = token;
  }

  static async start(
    cluster: TestCluster,
    { database, redis }: ManagerStores,
    count: number,
  ): Promise<KilledManagers> {
    const folder = scratchFolder();
    const config = join(folder, 'config.yaml');
    writeFileSync(config, stringify({ templates: { default: { image: IMAGE } } }));
    const kubeconfig = cluster.kubeconfigOf('sandbox-manager');
    const admin = clusterAccess(cluster.kubeconfig, NAMESPACE);
    const proxies: KillingProxy[] = [];
    const options: string[][] = [];
    for (let i = 0; i < count; i++) {
      const path = join(folder, `kubeconfig-${i}`);
      proxies.push(await KillingProxy.start({ ...{ kubeconfig, admin, path }, net: NET - i * 50 }));
      options.push([
        ...['--config', config, '--runtime', 'kubernetes', '--kubeconfig', path, '--listen', '127.0.0.1:0'],
        ...['--kubernetes-image', IMAGE, '--database', database, '--secret-key-file', join(folder, 'key')],
        ...['--allow-webhook-cidr', `${HOST_ADDRESS}/32`],
        ...(redis === null ? [] : ['--redis', redis, '--replicas', String(count)]),
      ]);
    }
    const token = await firstToken(database, 'sandboxes:write');
    const managers = new KilledManagers(proxies, options, token);
    onTestFinished(async () => {
      for (const { child, ended } of managers.#programs) {
        if (child.exitCode !== null || child.signalCode !== null) continue;
        child.kill('SIGKILL');
        await ended;
      }
      for (const proxy of proxies) await proxy.stop();
    });
    for (const i of options.keys()) await managers.#start(i);
    return managers;
  }

  async #start(i: number): Promise<void> {
    this.#programs[i] = await ManagerProgram.start(this.#options[i] as string[], READY_MS);
  }

  /** Whether another one goes on when the first is killed. */
  get has_another(): boolean {
    return this.#options.length > 1;
  }

  /** What the managers have logged last. */
  get log(): string {
    return this.#programs.map(({ log }) => log.slice(-4_000)).join('\n---\n');
  }

  /** Kills the first one at a step. */
  killAt(step: string, moment: Moment): void {
    this.proxies[0]?.steps.killAt(step, moment, async () => this.#programs[0]?.end('SIGKILL'));
  }

  /** Starts the first one again. */
  async restart(): Promise<void> {
    await this.#start(0);
  }

  /** Asks the first one, or (`first` false) one that is never killed while it is asked. Rejects if it does not answer. */
  async call(
    method: string,
    path: string,
    { body, key, first = false }: { body?: object; key?: string; first?: boolean } = {},
  ): Promise<{ status: number; data: Answered; error: Answered }> {
    const program = first ? this.#programs[0] : this.#programs.at(-1);
    const response = await fetch(`${program?.url}/api/v1/sandboxes${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.#token}`,
        'content-type': 'application/json',
        ...(key ? { 'idempotency-key': key } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const { data, error } = (await response.json()) as { data: unknown; error: unknown };
    return { status: response.status, data, error };
  }

  /** The data of a call that must succeed. */
  async do(method: string, path: string, body?: object): Promise<Answered> {
    const { status, data, error } = await this.call(method, path, body ? { body } : {});
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(error)}`);
    return data;
  }
}
