import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import type { SandboxTemplate } from '../../../src/contract/templates.ts';
import { NEEDED_RIGHTS } from '../../../src/runtime/kubernetes/cluster-check.ts';
import { KubernetesRuntime } from '../../../src/runtime/kubernetes/kubernetes-runtime.ts';
import { objectName } from '../../../src/runtime/kubernetes/names.ts';
import { startConsumer } from '../../support/consumer.ts';
import { eventually } from '../../support/eventually.ts';
import {
  HOST_ADDRESS,
  IMAGE,
  NAMESPACE,
  TestCluster,
  whyNoLongTests,
} from '../../support/kubernetes/cluster.ts';
import { ClusterManager } from '../../support/kubernetes/cluster-manager.ts';
import type { Client } from '../../support/manager/manager-client.ts';
import { ask, output, SMALL } from '../../support/runtime/conformance.ts';
import { SECRET, spec, webhook } from '../../support/runtime/sandboxes.ts';

vi.setConfig({ testTimeout: 400_000, hookTimeout: 400_000 });

/** For looks that take a process each. */
const SLOWLY = { timeout: 200_000, interval: 250 };
const SANDBOXES = '/api/v1/sandboxes';
const log = createLog('silent');
/** How long what is killed stays away. */
const AWAY_MS = 8_000;

const why_not = whyNoLongTests();
if (why_not !== null) console.log(`skipped, faults of a cluster: ${why_not}`);

const TEMPLATE: SandboxTemplate = {
  ...{ image: IMAGE, image_pull_secret: null, runtime_class: null, storage_class: null },
  ...{ user: 1000, work_dir: '/workspace', user_namespace: true, persistent_root: false, ephemeral_mib: 256 },
  resources: {},
  pool: null,
};

/** What is missing without a right that the manager can do without. */
const OPTIONAL_RIGHTS: Record<string, string> = {
  'list networkpolicies':
    'claims with block-all are refused: the manager lacks the right to list networkpolicies of networking.k8s.io',
};

/** What a start says: why it has failed, or what is missing. */
async function startOf(runtime: KubernetesRuntime): Promise<string[]> {
  try {
    await runtime.start();
    return runtime.limitations();
  } catch (error) {
    return [(error as Error).message];
  } finally {
    await runtime.stop();
  }
}

describe.skipIf(why_not !== null)('faults of a cluster, with exactly the rights of the manifests', () => {
  let cluster: TestCluster;
  let runtime: KubernetesRuntime;

  const runtimeOf = () => {
    const injection = 'auto' as const;
    const kubeconfig = cluster.kubeconfigOf('sandbox-manager');
    const templates = new Map([['default', TEMPLATE]]);
    const options = { kubeconfig, namespace: null, product_image: IMAGE, injection, templates };
    return new KubernetesRuntime({ ...options, webhook_cidrs: [`${HOST_ADDRESS}/32`] }, systemClock, log);
  };
  const kubectl = (...args: string[]) => cluster.kubectl('-n', NAMESPACE, ...args);
  const objects = () => kubectl('get', 'pods,pvc,secrets', '-o', 'name');
  const isNodeReady = () => {
    const path = '-o=jsonpath={.items[0].status.conditions[?(@.type=="Ready")].status}';
    return cluster.kubectl('get', 'nodes', path) === 'True';
  };
  const figure = (what: string, since_ms: number) =>
    console.log(`figure: ${what}: ${((performance.now() - since_ms) / 1000).toFixed(2)} s`);

  beforeAll(async () => {
    cluster = await TestCluster.start();
    runtime = runtimeOf();
    await runtime.start();
  });

  afterEach(async () => {
    await eventually(() => expect(isNodeReady()).toBe(true), SLOWLY);
    for (const sandbox_id of await runtime.list()) await runtime.remove(sandbox_id);
  });

  afterAll(async () => {
    await runtime?.stop();
    await cluster?.stop();
  });

  /** Runs `during` while something is away, and has it back when that has ended. */
  const while_away = async (named: string[], during: () => Promise<void>) => {
    cluster.script('kill', ...named);
    const until_ms = performance.now() + AWAY_MS;
    try {
      await during();
      await eventually(() => expect(performance.now()).toBeGreaterThan(until_ms), AWAY_MS * 2);
    } finally {
      cluster.script('again', ...named);
    }
  };
  const run = async (client: Client, id: string, shell: string) => {
    const { status, data } = await client.post(`${SANDBOXES}/${id}/processes?wait_ms=20000`, { shell });
    return { status, text: data?.output?.stdout?.trim() };
  };
  const statusOf = async (client: Client, id: string) =>
    (await client.get(`${SANDBOXES}/${id}?include_deleted=true`)).data?.status as string | undefined;
  const isGone = (client: Client, id: string) =>
    eventually(async () => {
      expect(await statusOf(client, id)).toBe('deleted');
      expect(objects()).not.toContain(objectName(id));
    }, SLOWLY);

  it('while the API server is away running sandboxes go on, and what needs it is 503 and changes nothing', async () => {
    const manager = await ClusterManager.start(cluster);
    const { client } = manager;
    const [id, paused, deleted] = [await client.claim(), await client.claim(), await client.claim()];
    expect((await client.post(`${SANDBOXES}/${paused}/pause`)).status).toBe(200);
    const begun = await client.post(`${SANDBOXES}/${id}/processes`, { shell: 'sleep 1000' });
    await while_away(['apiserver'], async () => {
      expect(await run(client, id, 'echo on')).toEqual({ status: 201, text: 'on' });
      const unavailable = { status: 503, error: { code: 'unavailable' } };
      for (const [method, path, body] of [
        ['POST', SANDBOXES, { config: {} }],
        ['POST', `${SANDBOXES}/${id}/pause`],
        ['POST', `${SANDBOXES}/${paused}/resume`],
        ['POST', `${SANDBOXES}/${paused}/fork`, {}],
        ['PUT', `${SANDBOXES}/${id}`, { config: { env_vars: { A: '1' } } }],
      ] as const) {
        const answer = await client.call(method, path, body);
        expect([path, answer]).toMatchObject([path, unavailable]);
        expect(answer.headers.get('retry-after')).toBe('1');
      }
      expect(await statusOf(client, paused)).toBe('paused');
      expect(await statusOf(client, id)).toBe('running');
      // It has not been paused by the call that failed.
      expect(await run(client, id, 'echo still$A')).toEqual({ status: 201, text: 'still' });
      expect((await client.call('DELETE', `${SANDBOXES}/${deleted}`)).status).toBe(202);
    });
    const since_ms = performance.now();
    expect(await statusOf(client, id)).toBe('running');
    expect(await run(client, id, 'echo after')).toEqual({ status: 201, text: 'after' });
    const process_path = `${SANDBOXES}/${id}/processes/${begun.data.process_id}`;
    expect((await client.get(process_path)).data.state).toBe('running');
    await isGone(client, deleted);
    await eventually(
      async () => expect((await client.post(`${SANDBOXES}/${paused}/resume`)).status).toBe(200),
      SLOWLY,
    );
    const another = await client.claim();
    figure('API server back, all as it was, and a claim', since_ms);
    for (const each of [id, paused, another]) await client.call('DELETE', `${SANDBOXES}/${each}`);
    for (const each of [id, paused, another]) await isGone(client, each);
    // Neither the claim nor the fork that was refused has left anything.
    await eventually(() => expect(objects()).toBe(''), SLOWLY);
  });

  it('a manager that starts while the API server is away says so and ends, and finds its sandboxes later', async () => {
    const manager = await ClusterManager.start(cluster);
    const { client } = manager;
    const id = await client.claim();
    await while_away(['apiserver'], async () => {
      await expect(manager.killAndStart()).rejects.toThrow(
        /--runtime kubernetes: The Kubernetes API does not answer/,
      );
    });
    await manager.killAndStart();
    expect(await run(client, id, 'echo on')).toEqual({ status: 201, text: 'on' });
    await client.call('DELETE', `${SANDBOXES}/${id}`);
    await isGone(client, id);
  });

  it.each(['kubelet', 'containerd'])(
    'while %s is away no sandbox is lost, and no verb answers wrongly',
    async (name) => {
      const manager = await ClusterManager.start(cluster);
      const { client } = manager;
      const id = await client.claim();
      await while_away(['node1', name], async () => {
        expect(await run(client, id, 'echo on')).toEqual({ status: 201, text: 'on' });
        expect((await client.post(`${SANDBOXES}/${id}/pause`)).status).toBe(200);
        expect((await client.post(`${SANDBOXES}/${id}/resume`)).status).toBe(200);
        expect(
          (await client.call('PUT', `${SANDBOXES}/${id}`, { config: { env_vars: { A: '1' } } })).status,
        ).toBe(200);
        expect(await run(client, id, 'echo $A')).toEqual({ status: 201, text: '1' });
      });
      const since_ms = performance.now();
      // Until the cluster has heard of its only node again, it has no room.
      const another = await eventually(() => client.claim(), SLOWLY);
      figure(`${name} back and a claim`, since_ms);
      expect([await statusOf(client, id), await runtime.liveness(id)]).toEqual(['running', 'alive']);
      expect(await run(client, id, 'echo after')).toEqual({ status: 201, text: 'after' });
      for (const each of [id, another]) await client.call('DELETE', `${SANDBOXES}/${each}`);
      for (const each of [id, another]) await isGone(client, each);
    },
  );

  it.each(['kubelet', 'containerd'])(
    'a claim and a deletion that begin while %s is away end once it is back',
    async (name) => {
      const manager = await ClusterManager.start(cluster);
      const { client } = manager;
      const id = await client.claim();
      let claiming: Promise<string> | undefined;
      await while_away(['node1', name], async () => {
        claiming = client.claim();
        claiming.catch(() => {});
        await client.call('DELETE', `${SANDBOXES}/${id}`);
      });
      const since_ms = performance.now();
      const claimed = (await claiming) as string;
      figure(`a claim begun without ${name}, after it was back`, since_ms);
      await isGone(client, id);
      expect(await run(client, claimed, 'echo on')).toEqual({ status: 201, text: 'on' });
      await client.call('DELETE', `${SANDBOXES}/${claimed}`);
      await isGone(client, claimed);
      expect(objects()).toBe('');
    },
  );

  it('what is refused for want of room is refused soon, and nothing of it is left', async () => {
    const ids: string[] = [];
    const room = { memory_mib: 1_024, cpu_millis: 100 };
    let since_ms = 0;
    const fill = async () => {
      for (let n = 0; n < 10; n++) {
        since_ms = performance.now();
        await runtime.create(spec(`room-${n}`, room));
        ids.push(`room-${n}`);
      }
    };
    await expect(fill()).rejects.toMatchObject({ code: 'capacity_exhausted' });
    figure('a claim on a full node refused', since_ms);
    expect((await runtime.list()).sort()).toEqual(ids);
    expect(objects().trim().split('\n')).toHaveLength(3 * ids.length);
    const [first = ''] = ids;
    expect(await output(runtime, first, 'echo on')).toBe('on');
    // What goes makes room.
    await runtime.remove(first);
    await runtime.create(spec('another', room));

    for (const [quota, hard] of Object.entries({
      pods: `pods=${ids.length}`,
      volumes: `persistentvolumeclaims=${ids.length}`,
      memory: 'requests.memory=1Mi',
      secrets: `secrets=${ids.length}`,
    })) {
      kubectl('create', 'quota', quota, `--hard=${hard}`);
      await eventually(
        () => expect(kubectl('get', 'quota', quota, '-o=jsonpath={.status.used}')).not.toBe(''),
        SLOWLY,
      );
      try {
        since_ms = performance.now();
        await expect(runtime.create(spec('refused', { ...SMALL }))).rejects.toMatchObject({
          code: 'capacity_exhausted',
          message: expect.stringContaining(`exceeded quota: ${quota}`),
        });
        figure(`a claim beyond the quota of ${quota} refused`, since_ms);
      } finally {
        kubectl('delete', 'quota', quota);
      }
    }
    expect(objects().trim().split('\n')).toHaveLength(3 * ids.length);
  });

  it('ten claims at once are served, and nothing is left when they are deleted', async () => {
    const manager = await ClusterManager.start(cluster);
    const { client } = manager;
    let since_ms = performance.now();
    const took: number[] = [];
    const ids = await Promise.all(
      Array.from({ length: 10 }, async () => {
        const id = await client.claim();
        took.push(performance.now() - since_ms);
        return id;
      }),
    );
    console.log(`figure: ten claims at once: ${took.map((ms) => (ms / 1000).toFixed(1)).join(' ')} s`);
    expect(objects().trim().split('\n')).toHaveLength(30);
    since_ms = performance.now();
    await Promise.all(ids.map((id) => client.call('DELETE', `${SANDBOXES}/${id}`)));
    await eventually(() => expect(objects()).toBe(''), SLOWLY);
    figure('ten deletions at once', since_ms);
  });

  it('a process that ignores SIGTERM, and a consumer that is down: each record arrives once, and nothing is left', async () => {
    const consumer = await startConsumer(HOST_ADDRESS);
    consumer.answer = (_, response) => response.writeHead(503).end();
    const manager = await ClusterManager.start(cluster);
    const { client } = manager;
    const id = await client.claim({
      webhook: { url: consumer.url, secret: SECRET },
      resources: { cpu: 1 },
    });
    await client.post(`${SANDBOXES}/${id}/processes`, { shell: 'trap "" TERM; while :; do sleep 1; done' });
    const publish = 'for step in $(seq 20); do sandboxctl publish --json "{\\"step\\":$step}"; done';
    const published = (await run(client, id, publish)).text.match(/evt_[\w-]+/g);
    expect(published).toHaveLength(20);
    const since_ms = performance.now();
    await client.call('DELETE', `${SANDBOXES}/${id}`);
    await eventually(() => expect(objects()).toBe(''), SLOWLY);
    figure('Pod, claim and secret gone', since_ms);
    const taken: string[] = [];
    consumer.answer = ({ event }, response) => {
      taken.push(event.event_id);
      response.writeHead(204).end();
    };
    await eventually(() => {
      expect(taken).toEqual(expect.arrayContaining(published));
      expect(consumer.types).toEqual(expect.arrayContaining(['sandbox.killed', 'sandbox.deleted']));
    }, SLOWLY);
    figure('deleted, and every record delivered', since_ms);
    expect(new Set(taken).size).toBe(taken.length);
    expect(consumer.unsigned(SECRET)).toEqual([]);
    const bodies = new Map<string, Set<string>>();
    for (const { event, body } of consumer.deliveries)
      bodies.set(event.event_id, (bodies.get(event.event_id) ?? new Set()).add(body));
    expect([...bodies.values()].every(({ size }) => size === 1)).toBe(true);
  });

  it('each right is needed, and the start names the one that is missing', async () => {
    const path = '-o=jsonpath={.rules}';
    const rules = JSON.parse(kubectl('get', 'role', 'sandbox-manager', path)) as {
      resources: string[];
      verbs: string[];
    }[];
    const granted = rules.flatMap(({ resources, verbs }) =>
      resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)),
    );
    const needed = Object.entries(NEEDED_RIGHTS).flatMap(([resource, verbs]) =>
      verbs.map((verb) => `${verb} ${resource}`),
    );
    expect(granted.toSorted()).toEqual([...needed, ...Object.keys(OPTIONAL_RIGHTS)].sort());
    const grant = (given: object) =>
      kubectl('patch', 'role', 'sandbox-manager', '--type=merge', '-p', JSON.stringify({ rules: given }));
    try {
      for (const right of granted) {
        const [verb, resource = ''] = right.split(' ');
        grant(
          rules
            .map((rule) =>
              rule.resources.includes(resource)
                ? { ...rule, verbs: rule.verbs.filter((each) => each !== verb) }
                : rule,
            )
            .filter(({ verbs }) => verbs.length > 0),
        );
        // The API server learns of it soon.
        const said =
          OPTIONAL_RIGHTS[right] ??
          `--runtime kubernetes: the rights in namespace ${NAMESPACE} are missing: ${right}`;
        await eventually(async () => expect(await startOf(runtimeOf())).toContain(said), SLOWLY);
      }
    } finally {
      grant(rules);
    }
    const lacks = expect.stringMatching(/rights? /);
    await eventually(async () => expect(await startOf(runtimeOf())).not.toContainEqual(lacks), SLOWLY);
    await runtime.create(spec('allowed', { ...SMALL, ...webhook(`http://${HOST_ADDRESS}:9/`) }));
    expect((await ask(runtime, 'allowed', 'GET', '/sandbox')).state).toBe('running');
  });
});
