import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import type { SandboxTemplate } from '../../../src/contract/templates.ts';
import { KubernetesRuntime } from '../../../src/runtime/kubernetes/kubernetes-runtime.ts';
import { objectName } from '../../../src/runtime/kubernetes/names.ts';
import { startConsumer } from '../../support/consumer.ts';
import { eventually } from '../../support/eventually.ts';
import {
  HOST_ADDRESS,
  IMAGE,
  NAMESPACE,
  TestCluster,
  whyNoCluster,
} from '../../support/kubernetes/cluster.ts';
import { ask, describeRuntime, output, SMALL } from '../../support/runtime/conformance.ts';
import { spec, undeliveredRecord, webhook } from '../../support/runtime/sandboxes.ts';

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

const why_not = whyNoCluster();
if (why_not !== null) console.log(`skipped, tests of the runtime kubernetes: ${why_not}`);

const TEMPLATE: SandboxTemplate = {
  ...{ image: IMAGE, image_pull_secret: null, runtime_class: null, storage_class: null },
  ...{ user: 1000, work_dir: '/workspace', user_namespace: true },
  resources: {},
};
const TEMPLATES = new Map([
  ['default', TEMPLATE],
  ['no-shell', { ...TEMPLATE, image: 'docker.io/local/pause:1' }],
  ['no-image', { ...TEMPLATE, image: '127.0.0.1:1/missing:1' }],
]);

describe.skipIf(why_not !== null)('on a real cluster, with exactly the rights of the manifests', () => {
  let cluster: TestCluster;
  let runtime: KubernetesRuntime;

  const runtimeOf = (kubeconfig: string) => {
    const options = { kubeconfig, namespace: null, product_image: IMAGE, templates: TEMPLATES };
    const log = createLog('silent');
    return new KubernetesRuntime({ ...options, webhook_cidrs: [`${HOST_ADDRESS}/32`] }, systemClock, log);
  };
  const objects = () => cluster.kubectl('-n', NAMESPACE, 'get', 'pods,pvc,secrets', '-o', 'name');

  beforeAll(async () => {
    cluster = await TestCluster.start();
    runtime = runtimeOf(cluster.kubeconfigOf('sandbox-manager'));
    await runtime.start();
  });

  afterEach(async () => {
    for (const sandbox_id of await runtime.list()) await runtime.remove(sandbox_id);
  });

  afterAll(async () => {
    await runtime?.stop();
    await cluster?.stop();
  });

  describeRuntime('kubernetes', async () => ({ runtime, work_dir: '/workspace', host: HOST_ADDRESS }));

  it('a sandbox has no rights, no token and no socket, and its user is nobody on the node', async () => {
    await runtime.create(spec('walls', { ...SMALL }));
    const seen = await output(
      runtime,
      'walls',
      'ls -A /run/sandboxd; ls -d /keys /control /volume /var/run/secrets 2>&1 | grep -v "No such"; printenv | grep KUBERNETES; grep -E "CapBnd|NoNewPrivs|^Seccomp:" /proc/self/status',
    );
    expect(seen.split(/\s+/)).toEqual(['CapBnd:', '0000000000000000', 'NoNewPrivs:', '1', 'Seccomp:', '2']);
    const [, outside] = (await output(runtime, 'walls', 'cat /proc/self/uid_map')).split(/\s+/);
    expect(Number(outside)).toBeGreaterThan(65_535);
    await runtime.remove('walls');
  });

  it('a sandbox whose Pod is evicted is lost, and another Pod reads what it had committed', async () => {
    const consumer = await startConsumer(HOST_ADDRESS);
    consumer.answer = (_, response) => response.writeHead(503).end();
    await runtime.create(spec('evicted', { ...webhook(consumer.url), ...SMALL }));
    const { event_id } = await ask(runtime, 'evicted', 'POST', '/webhook/publish', { payload: {} });
    cluster.kubectl('-n', NAMESPACE, 'delete', 'pod', objectName('evicted'), '--grace-period=1');
    expect([await runtime.isAlive('evicted'), await runtime.inspect('evicted')]).toEqual([false, 'lost']);
    expect(await runtime.end('evicted')).toEqual({ outcome: 'lost' });
    const { records, lost } = await undeliveredRecord(runtime, 'evicted');
    expect([records.map((each) => each.event_id).includes(event_id), lost]).toEqual([true, 0]);
    await runtime.remove('evicted');
    expect(objects()).toBe('');
  });

  it.each([
    ['a node without room', { memory_mib: 1_000_000 }, 'capacity_exhausted', /Insufficient memory/],
    ['an image that is missing', { template_id: 'no-image' }, 'internal_error', /ErrImage|ImagePull/],
    ['an image without a shell', { template_id: 'no-shell' }, 'internal_error', /\/bin\/sh/],
    ['an unknown template', { template_id: 'nobody' }, 'invalid_request', /template/],
  ])('of %s nothing is left but one line', async (_case, given, code, message) => {
    await expect(runtime.create(spec('refused', { ...SMALL, ...given }))).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
    expect(objects()).toBe('');
  });

  it('a quota of the namespace is no room', async () => {
    cluster.kubectl('-n', NAMESPACE, 'create', 'quota', 'none', '--hard=pods=0');
    try {
      await expect(runtime.create(spec('full', { ...SMALL }))).rejects.toMatchObject({
        code: 'capacity_exhausted',
      });
    } finally {
      cluster.kubectl('-n', NAMESPACE, 'delete', 'quota', 'none');
    }
    expect(objects()).toBe('');
  });

  it('names every right that is missing', async () => {
    cluster.kubectl('-n', NAMESPACE, 'create', 'serviceaccount', 'nobody');
    const powerless = runtimeOf(cluster.kubeconfigOf('nobody'));
    await expect(powerless.start()).rejects.toThrow(/create pods, .*patch pods\/resize, .*get secrets/);
    await powerless.stop();
  });

  // The last one: the node is not what it was.
  it('a sandbox on a node that loses power is lost, and read once the node says that it has ended', async () => {
    const consumer = await startConsumer(HOST_ADDRESS);
    consumer.answer = (_, response) => response.writeHead(503).end();
    await runtime.create(spec('dark', { ...webhook(consumer.url), ...SMALL }));
    const { event_id } = await ask(runtime, 'dark', 'POST', '/webhook/publish', { payload: {} });
    cluster.script('crash', 'node1');
    await eventually(async () => expect(await runtime.isAlive('dark')).toBe(false), 60_000);
    expect(await runtime.inspect('dark')).toBe('lost');
    const ending = runtime.end('dark');
    cluster.script('start', 'node1');
    expect(await ending).toEqual({ outcome: 'lost' });
    const { records, lost } = await undeliveredRecord(runtime, 'dark');
    expect([records.map((each) => each.event_id).includes(event_id), lost]).toEqual([true, 0]);
  });
});
