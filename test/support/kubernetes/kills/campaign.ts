import { expect } from 'vitest';
import { ClusterClient } from '../../../../src/runtime/kubernetes/api/cluster-client.ts';
import { clusterAccess } from '../../../../src/runtime/kubernetes/api/config-file.ts';
import type { KubernetesObject, ObjectList } from '../../../../src/runtime/kubernetes/api/objects.ts';
import { objectName } from '../../../../src/runtime/kubernetes/names.ts';
import { type Consumer, startConsumer } from '../../consumer.ts';
import { eventually } from '../../eventually.ts';
import { HOST_ADDRESS, NAMESPACE, type TestCluster } from '../cluster.ts';
import type { Moment } from './kill-steps.ts';
import { KilledManagers, type ManagerStores } from './killed-managers.ts';

const SECRET = 'a key made for this test';
const KINDS = ['persistentvolumeclaims', 'pods', 'secrets'];
const WITHIN = { timeout: 240_000, interval: 100 };

/** One verb of the API, and what must hold once it was carried out, by whomever. */
export interface KilledVerb {
  /** Whether it goes on after its answer, until `settled`. */
  goes_on: boolean;
  /** Asks for it; `first`: the manager that is to be killed. */
  act(first: boolean): Promise<unknown>;
  /** Throws until it is as it must be, with or without a kill. */
  settled(): Promise<void>;
}

/** What a campaign came to. */
export interface CampaignResult {
  steps: string[];
  kills: number;
  seconds: number;
}

/** Managers that are killed at every step of a verb, on a cluster, with a consumer of all events. */
export class Campaign {
  readonly managers: KilledManagers;
  readonly consumer: Consumer;
  /** Sandboxes whose events the consumer refuses. */
  readonly refused = new Set<string>();
  readonly #client: ClusterClient;
  readonly #acknowledged: string[] = [];
  readonly #deleted: string[] = [];

  private constructor(managers: KilledManagers, consumer: Consumer, client: ClusterClient) {
    this.managers = managers;
    this.consumer = consumer;
    this.#client = client;
    consumer.answer = ({ body }, response) => {
      response.writeHead(this.refused.has(JSON.parse(body).sandbox_id) ? 503 : 204).end();
    };
  }

  static async start(cluster: TestCluster, stores: ManagerStores, count: number): Promise<Campaign> {
    const consumer = await startConsumer(HOST_ADDRESS);
    const client = new ClusterClient(clusterAccess(cluster.kubeconfig, NAMESPACE));
    return new Campaign(await KilledManagers.start(cluster, stores, count), consumer, client);
  }

  /** The body of a claim. */
  get claim(): object {
    const webhook = { url: this.consumer.url, secret: SECRET };
    return { template: 'default', config: { webhook, resources: { cpu: 0.5, memory: '256Mi' } } };
  }

  async claimed(): Promise<string> {
    return (await this.managers.do('POST', '', this.claim)).sandbox_id;
  }

  async run(sandbox_id: string, shell: string): Promise<string> {
    const path = `/${sandbox_id}/processes?wait_ms=20000`;
    const { exit_code, output } = await this.managers.do('POST', path, { shell });
    if (exit_code !== 0) throw new Error(`${shell} ended with ${exit_code}: ${output.stderr}`);
    return output.stdout.trim();
  }

  /** Publishes a record from inside, which its daemon acknowledges. */
  async publish(sandbox_id: string): Promise<void> {
    const published = await this.run(sandbox_id, `sandboxctl publish --json '{"step":1}'`);
    this.#acknowledged.push(JSON.parse(published).event_id);
  }

  /** Takes a sandbox's Pod away, as an eviction does. */
  async evict(sandbox_id: string): Promise<void> {
    const path = this.#client.path('pods', objectName(sandbox_id));
    await this.#client.remove(path, { grace_s: 1 });
    await eventually(async () => expect(await this.#client.get(path)).toBeNull(), WITHIN);
  }

  /** Asks for a deletion; rejects unless it is known to be committed. */
  async delete(sandbox_id: string, first = false): Promise<void> {
    const { status, error } = await this.managers.call('DELETE', `/${sandbox_id}`, { first });
    if (status >= 300 && status !== 404) throw new Error(`${status} ${JSON.stringify(error)}`);
  }

  /** Throws unless a deleted sandbox is gone. */
  async gone(sandbox_id: string): Promise<void> {
    await this.delete(sandbox_id);
    const { data } = await this.managers.call('GET', `/${sandbox_id}?include_deleted=true`);
    expect(data?.status).toBe('deleted');
    if (!this.#deleted.includes(sandbox_id)) this.#deleted.push(sandbox_id);
  }

  /** Throws unless these are all sandboxes that there are, for callers and in the cluster. */
  async only(...sandbox_ids: string[]): Promise<void> {
    const { sandboxes } = await this.managers.do('GET', '');
    expect(sandboxes.map(({ id }: { id: string }) => id).sort()).toEqual([...sandbox_ids].sort());
    const names = sandbox_ids.map(objectName);
    const wanted = KINDS.flatMap((kind) => names.map((name) => `${kind}/${name}`));
    expect((await this.#objects()).sort()).toEqual(wanted.sort());
  }

  async #objects(): Promise<string[]> {
    const lists = KINDS.map(async (kind) => {
      const list = await this.#client.get<ObjectList<KubernetesObject>>(this.#client.path(kind));
      return (list?.items ?? []).map(({ metadata }) => `${kind}/${metadata.name}`);
    });
    return (await Promise.all(lists)).flat();
  }

  /** Kills the first manager before and after each step of a verb, which one run without a kill tells; `made` gives a new one. */
  async of(made: () => Promise<KilledVerb>): Promise<CampaignResult> {
    const started_ms = performance.now();
    const [proxy] = this.managers.proxies;
    const whole = await made();
    proxy?.steps.record();
    await whole.act(true);
    if (whole.goes_on) await eventually(() => whole.settled(), WITHIN);
    const steps = [...(proxy?.steps.recorded ?? [])];
    await eventually(() => whole.settled(), WITHIN);
    let kills = 0;
    for (const step of steps) {
      for (const moment of ['before', 'after'] as const) {
        const at_ms = performance.now();
        await this.#round(await made(), step, moment).catch((error: Error) => {
          throw new Error(`killed ${moment} ${step}: ${error.message}\n${this.managers.log}`);
        });
        kills += 1;
        console.log(`killed ${moment} ${step}: ${((performance.now() - at_ms) / 1_000).toFixed(1)} s`);
      }
    }
    return { steps, kills, seconds: Math.round((performance.now() - started_ms) / 1_000) };
  }

  async #round(verb: KilledVerb, step: string, moment: Moment): Promise<void> {
    const { managers } = this;
    const [proxy] = managers.proxies;
    managers.killAt(step, moment);
    void verb.act(true).catch(() => {}); // its answer is lost
    await eventually(() => expect(proxy?.steps.is_killed).toBe(true), WITHIN);
    if (!managers.has_another) await managers.restart();
    await eventually(() => verb.settled(), WITHIN);
    if (managers.has_another) await managers.restart();
  }

  /** Throws unless every acknowledged record and every deletion has arrived, signed and as one, and no volume had two daemons. */
  async complete(): Promise<void> {
    this.refused.clear();
    const { consumer } = this;
    await eventually(() => {
      expect(this.#acknowledged.filter((id) => !consumer.find(id))).toEqual([]);
      const told = new Map(consumer.of('sandbox.deleted').map(({ body, event }) => [event.event_id, body]));
      const ids = [...told.values()].map((body) => JSON.parse(body).sandbox_id);
      expect(ids.sort()).toEqual([...this.#deleted].sort());
    }, WITHIN);
    expect(consumer.unsigned(SECRET)).toEqual([]);
    const bodies = new Set(consumer.deliveries.map(({ body }) => body));
    expect(bodies.size).toBe(new Set(consumer.deliveries.map(({ event }) => event.event_id)).size);
    const daemons = this.managers.proxies.flatMap((proxy) => [...proxy.daemons]);
    expect(new Set(daemons.map(([volume]) => volume)).size).toBe(daemons.length);
    expect(daemons.filter(([, count]) => count !== 1)).toEqual([]);
    this.#client.close();
  }
}
