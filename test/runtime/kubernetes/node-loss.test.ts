import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Consumer, startConsumer } from '../../support/consumer.ts';
import { eventually } from '../../support/eventually.ts';
import { HOST_ADDRESS, NAMESPACE, TestCluster, whyNoLongTests } from '../../support/kubernetes/cluster.ts';
import { ClusterManager } from '../../support/kubernetes/cluster-manager.ts';
import { SECRET } from '../../support/runtime/sandboxes.ts';

vi.setConfig({ testTimeout: 600_000, hookTimeout: 400_000 });

/** For looks that take a process each. */
const SLOWLY = { timeout: 300_000, interval: 250 };
const SANDBOXES = '/api/v1/sandboxes';
/** Publishes until the sandbox ends; what was acknowledged is in a file of the volume, a line each. */
const PUBLISHER = `step=0; while :; do step=$((step + 1))
  sandboxctl publish --json "{\\"step\\":$step,\\"text\\":\\"äöü \\\\u0000 $step\\"}" >> acknowledged && echo >> acknowledged; done`;

const why_not = whyNoLongTests();
if (why_not !== null) console.log(`skipped, nodes of a cluster that are lost: ${why_not}`);

describe.skipIf(why_not !== null)('a cluster of two nodes', () => {
  let cluster: TestCluster;

  const kubectl = (...args: string[]) => cluster.kubectl('-n', NAMESPACE, ...args);
  const pods = () => kubectl('get', 'pods', '-o', 'name').trim().split('\n').filter(Boolean);
  const objects = () => kubectl('get', 'pods,pvc,secrets', '-o', 'name');
  const figure = (what: string, since_ms: number) =>
    console.log(`figure: ${what}: ${((performance.now() - since_ms) / 1000).toFixed(1)} s`);

  beforeAll(async () => {
    cluster = await TestCluster.start(2);
  });

  afterAll(() => cluster?.stop());

  /** A sandbox that publishes, whose consumer refuses until it is told otherwise. */
  const publishing = async () => {
    const consumer = await startConsumer(HOST_ADDRESS);
    consumer.answer = (_, response) => response.writeHead(503).end();
    const manager = await ClusterManager.start(cluster);
    const { client } = manager;
    const id = await client.claim({
      webhook: { url: consumer.url, secret: SECRET },
      resources: { cpu: 1 },
    });
    const { data } = await client.get(`${SANDBOXES}/${id}`);
    const pod = data.pod_name as string;
    const node = kubectl('get', 'pod', pod, '-o=jsonpath={.spec.nodeName}');
    const uid = kubectl('get', 'pvc', pod, '-o=jsonpath={.metadata.uid}');
    const file = join(cluster.folder, 'volumes', uid, 'work/acknowledged');
    /** The ids of events that its daemon has promised to deliver. */
    const acknowledged = () =>
      existsSync(file) ? [...readFileSync(file, 'utf8').matchAll(/evt_[\w-]+/g)].map(([found]) => found) : [];
    expect((await client.post(`${SANDBOXES}/${id}/processes`, { shell: PUBLISHER })).status).toBe(201);
    await eventually(() => expect(acknowledged().length).toBeGreaterThan(5), SLOWLY);
    const view = async () => (await client.get(`${SANDBOXES}/${id}`)).data;
    return { consumer, manager, client, id, pod, node, acknowledged, view };
  };

  /** Notes what there is of a sandbox until `stop`: whether its Pod was ever there beside another that reads its volume. */
  const watched = (pod: string) => {
    let beside = 0;
    const timer = setInterval(() => {
      const now = pods();
      if (now.includes(`pod/${pod}`) && now.includes(`pod/${pod}-reader`)) beside += 1;
    }, 200);
    onTestFinished(() => clearInterval(timer));
    return () => {
      clearInterval(timer);
      return beside;
    };
  };

  /** From then on the consumer takes everything; gives what it has taken, and from whom. */
  const taking = (consumer: Consumer) => {
    const taken: { event_id: string; event_type: string; from: string }[] = [];
    consumer.answer = ({ event: { event_id, event_type } }, response) => {
      taken.push({ event_id, event_type, from: response.req.socket.remoteAddress ?? '' });
      response.writeHead(204).end();
    };
    return taken;
  };

  const expectWhole = (consumer: Consumer) => {
    expect(consumer.unsigned(SECRET)).toEqual([]);
    const bodies = new Map<string, Set<string>>();
    for (const { event, body } of consumer.deliveries)
      bodies.set(event.event_id, (bodies.get(event.event_id) ?? new Set()).add(body));
    expect([...bodies].filter(([, { size }]) => size > 1)).toEqual([]);
  };

  it('a sandbox on a node that loses power is failed, and read once the node is back', async () => {
    const { consumer, manager, client, id, pod, node, acknowledged, view } = await publishing();
    const other = await client.claim();
    let since_ms = performance.now();
    cluster.script('crash', node);
    await eventually(async () => expect((await view()).status).toBe('failed'), SLOWLY);
    figure('a node without power: failed', since_ms);
    expect((await view()).failure).toBe('runtime_lost');
    for (const verb of ['pause', 'resume', 'fork'])
      expect((await client.post(`${SANDBOXES}/${id}/${verb}`)).status).toBe(409);
    // The cluster has room on the other node, and what runs there goes on.
    const third = await client.claim();
    for (const each of [other, third]) {
      const { pod_name } = (await client.get(`${SANDBOXES}/${each}`)).data;
      if (kubectl('get', 'pod', pod_name, '-o=jsonpath={.spec.nodeName}') === node) continue;
      expect(
        (await client.post(`${SANDBOXES}/${each}/processes?wait_ms=20000`, { shell: 'true' })).status,
      ).toBe(201);
    }
    const stop = watched(pod);
    expect((await client.call('DELETE', `${SANDBOXES}/${id}`)).status).toBeLessThan(300);
    await eventually(() => expect(manager.program().log).toMatch(/does not say that it has ended/), SLOWLY);
    expect(pods()).toContain(`pod/${pod}`);
    const promised = acknowledged();
    since_ms = performance.now();
    cluster.script('start', node);
    await eventually(() => expect(objects()).not.toContain(pod), SLOWLY);
    figure('power back: deleted', since_ms);
    expect(stop()).toBe(0);
    const taken = taking(consumer);
    const ids = () => taken.map(({ event_id }) => event_id);
    await eventually(() => {
      expect(ids()).toEqual(expect.arrayContaining(promised));
      expect(consumer.types).toContain('sandbox.deleted');
    }, SLOWLY);
    expect(new Set(ids()).size).toBe(taken.length);
    expectWhole(consumer);
    expect(consumer.of('sandbox.deleted')[0]?.event.payload).toMatchObject({ reason: 'runtime_lost' });
    console.log(`figure: records promised ${promised.length}, taken ${taken.length}`);
    for (const each of [other, third]) await client.call('DELETE', `${SANDBOXES}/${each}`);
    await eventually(() => expect(objects()).toBe(''), SLOWLY);
  });

  it('a sandbox on a node that is cut off runs on, and its volume is read only once it has ended', async () => {
    const { consumer, manager, client, id, pod, node, acknowledged, view } = await publishing();
    let since_ms = performance.now();
    cluster.script('cut', node);
    let taken: ReturnType<typeof taking> = [];
    let stop = () => 0;
    let promised: string[] = [];
    try {
      await eventually(async () => expect((await view()).status).toBe('failed'), SLOWLY);
      figure('a node cut off: failed', since_ms);
      stop = watched(pod);
      expect((await client.call('DELETE', `${SANDBOXES}/${id}`)).status).toBeLessThan(300);
      await eventually(() => expect(manager.program().log).toMatch(/does not say that it has ended/), SLOWLY);
      // Its daemon writes to the volume, and promises more: nobody may read that yet.
      const before = acknowledged().length;
      await eventually(() => expect(acknowledged().length).toBeGreaterThan(before), SLOWLY);
      expect(pods()).toEqual([`pod/${pod}`]);
      promised = acknowledged();
      taken = taking(consumer);
    } finally {
      cluster.script('join', node);
    }
    since_ms = performance.now();
    await eventually(() => {
      const now = acknowledged();
      if (now.length > promised.length) promised = now;
      expect(objects()).not.toContain(pod);
    }, SLOWLY);
    figure('node back on the network: deleted', since_ms);
    expect(stop()).toBe(0);
    await eventually(() => {
      expect(taken.map(({ event_id }) => event_id)).toEqual(expect.arrayContaining(promised));
      expect(consumer.types).toContain('sandbox.deleted');
    }, SLOWLY);
    expectWhole(consumer);
    // Once the manager has what is left, the daemon sends nothing. The deletion itself is the manager's from the start.
    const by_manager = taken
      .filter(({ event_type }) => event_type !== 'sandbox.deleted')
      .map(({ from }) => from.endsWith(HOST_ADDRESS));
    expect(by_manager).toEqual(by_manager.toSorted());
    const twice = taken.length - new Set(taken.map(({ event_id }) => event_id)).size;
    console.log(`figure: records promised ${promised.length}, taken ${taken.length}, of them twice ${twice}`);
    await eventually(() => expect(objects()).toBe(''), SLOWLY);
  });

  // The last one: the node does not come back.
  it('a node that is declared out of service is read from another', async () => {
    const { consumer, manager, client, id, pod, node, acknowledged, view } = await publishing();
    cluster.script('crash', node);
    await eventually(async () => expect((await view()).status).toBe('failed'), SLOWLY);
    expect((await client.call('DELETE', `${SANDBOXES}/${id}`)).status).toBeLessThan(300);
    await eventually(() => expect(manager.program().log).toMatch(/does not say that it has ended/), SLOWLY);
    expect(pods()).toEqual([`pod/${pod}`]);
    const promised = acknowledged();
    const since_ms = performance.now();
    cluster.kubectl('taint', 'nodes', node, 'node.kubernetes.io/out-of-service=nodeshutdown:NoExecute');
    await eventually(() => expect(objects()).toBe(''), SLOWLY);
    figure('out of service: deleted', since_ms);
    const taken = taking(consumer);
    const ids = () => taken.map(({ event_id }) => event_id);
    await eventually(() => {
      expect(ids()).toEqual(expect.arrayContaining(promised));
      expect(consumer.types).toContain('sandbox.deleted');
    }, SLOWLY);
    expect(new Set(ids()).size).toBe(taken.length);
    expectWhole(consumer);
  });
});
