import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stringify } from 'yaml';
import { ClusterClient } from '../../../src/runtime/kubernetes/api/cluster-client.ts';
import { clusterAccess } from '../../../src/runtime/kubernetes/api/config-file.ts';
import type { ObjectList, Pod } from '../../../src/runtime/kubernetes/api/objects.ts';
import { IMAGE, NAMESPACE, TestCluster } from '../../support/kubernetes/cluster.ts';
import { type Answer, Client } from '../../support/manager/manager-client.ts';
import { ManagerProgram, runManagerCommand } from '../../support/manager-program.ts';
import type { Bench } from '../support/bench.ts';
import { nowMs } from '../support/numbers.ts';

const LOOK_MS = 50;
const GONE_WITHIN_MS = 60_000;
const RESOURCES = { memory: '256Mi', cpu: 0.1, disk: '1Gi' };
const CONFINED = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } };

/** The template of which one Pod waits for claims. */
export const POOLED = 'pooled';

/** A cluster of one node with a built manager beside it; all of it ends with the benchmark. */
export class ManagedCluster {
  readonly #cluster: TestCluster;
  readonly #client: ClusterClient;
  readonly #folder: string;
  #owner: Client | null = null;
  #bare_pods = 0;

  private constructor(cluster: TestCluster, folder: string) {
    this.#cluster = cluster;
    this.#folder = folder;
    this.#client = new ClusterClient(clusterAccess(cluster.kubeconfig, NAMESPACE));
  }

  static async start(bench: Bench): Promise<ManagedCluster> {
    const cluster = await TestCluster.start();
    bench.onEnd(() => cluster.stop());
    const made = new ManagedCluster(cluster, bench.folder());
    bench.onEnd(() => made.#client.close());
    return made;
  }

  /** Starts a manager of these sandboxes, with `pool` Pods of the template `POOLED`; resolves when it is ready. */
  async manager(pool = 0): Promise<ManagerProgram> {
    const config = join(this.#folder, 'config.yaml');
    const templates = {
      default: { image: IMAGE, resources: RESOURCES },
      ...(pool === 0 ? {} : { [POOLED]: { image: IMAGE, resources: RESOURCES, pool } }),
    };
    writeFileSync(config, stringify({ templates }));
    const kubeconfig = this.#cluster.kubeconfigOf('sandbox-manager');
    return ManagerProgram.start([
      ...['--runtime', 'kubernetes', '--kubernetes-image', IMAGE, '--kubeconfig', kubeconfig],
      ...['--config', config, ...this.#files(), '--listen', '127.0.0.1:0'],
    ]);
  }

  #files(): string[] {
    const database = `sqlite:${join(this.#folder, 'manager.db')}`;
    return ['--database', database, '--secret-key-file', join(this.#folder, 'key')];
  }

  /** From now on its sandboxes are claimed of this manager. */
  async use(manager: ManagerProgram): Promise<void> {
    const scope = ['--scope', 'sandboxes:write', '--database', `sqlite:${join(this.#folder, 'manager.db')}`];
    const token = await runManagerCommand('token', 'create', '--team', 'team_bench', ...scope);
    this.#owner = new Client(() => manager.url, token);
  }

  /** Calls the manager; throws unless the answer is a success. */
  async call(method: string, path: string, body?: object): Promise<Answer> {
    const answer = await (this.#owner as Client).call(method, `/api/v1/sandboxes${path}`, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.error?.message}`);
    return answer;
  }

  /** Claims a sandbox; its id and Pod. */
  async claim(template = 'default'): Promise<{ sandbox_id: string; pod_name: string }> {
    return (await this.call('POST', '', { template })).data;
  }

  /** Deletes a sandbox; resolves once its record is deleted, which is when nothing of it is left in the cluster. */
  async delete(sandbox_id: string): Promise<void> {
    await this.call('DELETE', `/${sandbox_id}`);
    const until_ms = nowMs() + GONE_WITHIN_MS;
    while (await this.#isThere(sandbox_id)) {
      if (nowMs() > until_ms) throw new Error(`the sandbox ${sandbox_id} is not deleted`);
      await sleep(LOOK_MS);
    }
  }

  async #isThere(sandbox_id: string): Promise<boolean> {
    return (await this.call('GET', `/${sandbox_id}?include_deleted=true`)).data.status !== 'deleted';
  }

  /** Resolves once as many Pods wait in the pool. */
  async poolOf(size: number): Promise<void> {
    const path = `${this.#client.path('pods')}?labelSelector=sandboxd.dev/pool`;
    for (;;) {
      const pods = (await this.#client.get<ObjectList<Pod>>(path))?.items ?? [];
      if (pods.filter((pod) => runs(pod) && !pod.metadata.deletionTimestamp).length >= size) return;
      await sleep(LOOK_MS);
    }
  }

  /** Makes a Pod of one container of the sandboxes' image by one call, and waits until it runs; how to remove it. */
  async barePod(): Promise<() => Promise<void>> {
    const pods = this.#client.path('pods');
    const name = `bare-${++this.#bare_pods}`;
    const made = await this.#client.create<Pod>(pods, {
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name } },
      spec: {
        ...{ restartPolicy: 'Never', automountServiceAccountToken: false, enableServiceLinks: false },
        securityContext: { runAsUser: 1000, runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
        containers: [
          { name: 'bare', image: IMAGE, command: ['sleep', 'infinity'], securityContext: CONFINED },
        ],
      },
    });
    await this.#watch(name, made.metadata.resourceVersion, (type, pod) => type !== 'DELETED' && runs(pod));
    return async () => {
      const now = await this.#client.get<Pod>(this.#client.path('pods', name));
      await this.#client.remove(this.#client.path('pods', name), { grace_s: 0 });
      await this.#watch(name, now?.metadata.resourceVersion ?? '0', (type) => type === 'DELETED');
    };
  }

  async #watch(name: string, version: string, isDone: (type: string, pod: Pod) => boolean): Promise<void> {
    const path = `${this.#client.path('pods')}?fieldSelector=metadata.name%3D${name}`;
    const over = new AbortController();
    for await (const { type, object } of this.#client.watch<Pod>(path, version, over.signal)) {
      if (isDone(type, object)) break;
    }
    over.abort();
  }

  /** What sandboxes are made of, by name. */
  objects(): string[] {
    const listed = this.#cluster.kubectl('-n', NAMESPACE, 'get', 'pods,pvc,secrets', '-o', 'name');
    return listed.split('\n').filter((line) => line !== '');
  }
}

function runs({ status }: Pod): boolean {
  const { containerStatuses = [] } = status ?? {};
  return containerStatuses.length > 0 && containerStatuses.every(({ state }) => state?.running);
}
