import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import type { SandboxTemplate, SandboxTemplates } from '../../../src/contract/templates.ts';
import { ClusterClient } from '../../../src/runtime/kubernetes/api/cluster-client.ts';
import { clusterAccess } from '../../../src/runtime/kubernetes/api/config-file.ts';
import type { VolumeClaim } from '../../../src/runtime/kubernetes/api/objects.ts';
import { KubernetesRuntime } from '../../../src/runtime/kubernetes/kubernetes-runtime.ts';
import { objectName } from '../../../src/runtime/kubernetes/names.ts';
import { type KubernetesRecord, Records } from '../../../src/runtime/kubernetes/records.ts';
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

/** For looks that take a process each. */
const SLOWLY = { timeout: 120_000, interval: 500 };

const why_not = whyNoCluster();
if (why_not !== null) console.log(`skipped, tests of the runtime kubernetes: ${why_not}`);

const TEMPLATE: SandboxTemplate = {
  ...{ image: IMAGE, image_pull_secret: null, runtime_class: null, storage_class: null },
  ...{ user: 1000, work_dir: '/workspace', user_namespace: true, persistent_root: false, ephemeral_mib: 256 },
  resources: {},
  pool: null,
};
const TEMPLATES = new Map([
  ['default', TEMPLATE],
  ['no-shell', { ...TEMPLATE, image: 'docker.io/local/pause:1' }],
  ['whole', { ...TEMPLATE, user: 0, persistent_root: true }],
  ['no-image', { ...TEMPLATE, image: '127.0.0.1:1/missing:1' }],
]);

describe.skipIf(why_not !== null)('on a real cluster, with exactly the rights of the manifests', () => {
  let cluster: TestCluster;
  let runtime: KubernetesRuntime;

  const runtimeOf = (kubeconfig: string, templates: SandboxTemplates = TEMPLATES) => {
    const injection = 'auto' as const;
    const options = { kubeconfig, namespace: null, product_image: IMAGE, injection, templates };
    const log = createLog('silent');
    return new KubernetesRuntime({ ...options, webhook_cidrs: [`${HOST_ADDRESS}/32`] }, systemClock, log);
  };
  /** To the daemons of the node. */
  const signalDaemons = (signal: string) =>
    cluster.script(
      ...['in', 'node1', 'sh', '-c'],
      `cd /proc; for pid in [0-9]*; do if grep -q sandboxd.cj[s] $pid/cmdline; then kill -${signal} $pid; fi; done 2>/dev/null`,
    );
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

  it('where the namespace forbids mounts, only the volume persists, and that is said', () => {
    expect(runtime.limitations()).toContainEqual(
      expect.stringMatching(/^only the volume of the template whole persists: .*violates PodSecurity/),
    );
  });

  it('a root persists: it is changed anywhere, a fork has it, and nothing in it has a capability', async () => {
    const level = (name: string) =>
      cluster.kubectl(
        'label',
        '--overwrite',
        `ns/${NAMESPACE}`,
        `pod-security.kubernetes.io/enforce=${name}`,
      );
    level('privileged');
    const whole = runtimeOf(cluster.kubeconfigOf('sandbox-manager'));
    onTestFinished(async () => {
      level('restricted');
      await whole.stop();
    });
    await whole.start();
    expect(whole.limitations().join()).not.toContain('whole');
    const of = { ...SMALL, template_id: 'whole' };
    expect(await whole.create(spec('parent', of))).toMatchObject({ persistence: 'root' });
    const rights =
      'grep -hE "^Cap|NoNewPrivs|^Seccomp:" /proc/1/status /proc/self/status | cut -f2 | sort -u';
    expect(await output(whole, 'parent', rights)).toBe('0000000000000000\n1\n2');
    expect(await output(whole, 'parent', 'pwd; ls -A /run/sandboxd /run/sandboxd-root')).toBe(
      '/workspace\n/run/sandboxd:\n\n/run/sandboxd-root:',
    );
    // Besides, what a daemon of the fork would start with, were that not the image's.
    await output(
      whole,
      'parent',
      'echo made > /etc/made; rm /usr/bin/tail; mkdir /usr/new; echo nothing > /etc/ld.so.preload; ln -s / /var/link',
    );
    await expect(output(whole, 'parent', 'mv /run /moved')).rejects.toThrow(/busy/i);
    await whole.pause('parent', null);
    await whole.resume('parent', null);
    expect(await whole.fork('parent', spec('child', of))).toMatchObject({
      ...{ outcome: 'created', persistence: 'root' },
    });
    await whole.resume('child', null);
    for (const id of ['parent', 'child']) {
      expect(await output(whole, id, 'cat /etc/made; ls -d /usr/new /usr/bin/tail 2>/dev/null || :')).toBe(
        'made\n/usr/new',
      );
    }
    expect(await output(whole, 'child', rights)).toBe('0000000000000000\n1\n2');
    await output(whole, 'child', 'rm /etc/made');
    expect(await output(whole, 'parent', 'cat /etc/made')).toBe('made');
    expect(await whole.end('child')).toEqual({ outcome: 'killed' });
  });

  it('a sandbox whose Pod is evicted is lost, and another Pod reads what it had committed', async () => {
    const consumer = await startConsumer(HOST_ADDRESS);
    consumer.answer = (_, response) => response.writeHead(503).end();
    await runtime.create(spec('evicted', { ...webhook(consumer.url), ...SMALL }));
    const { event_id } = await ask(runtime, 'evicted', 'POST', '/webhook/publish', { payload: {} });
    cluster.kubectl('-n', NAMESPACE, 'delete', 'pod', objectName('evicted'), '--grace-period=1');
    await eventually(async () => expect(await runtime.liveness('evicted')).toBe('lost'));
    expect(await runtime.inspect('evicted')).toBe('lost');
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

  it('a sandbox whose node is silent is not lost while its keeper answers', async () => {
    await runtime.create(spec('silent', { ...SMALL }));
    const node = join(cluster.folder, 'cluster/node1');
    const kubelet = readFileSync(join(node, 'kubelet.pid'), 'utf8').trim();
    const ready = '-o=jsonpath={.status.conditions[?(@.type=="Ready")].status}';
    const seen = () => cluster.kubectl('-n', NAMESPACE, 'get', 'pod', objectName('silent'), ready);
    cluster.script('in', 'node1', 'kill', '-STOP', kubelet);
    try {
      await eventually(() => expect(seen()).toBe('False'), SLOWLY);
      expect(await runtime.liveness('silent')).toBe('alive');
      expect(await runtime.inspect('silent')).toBe('running');
      expect(await runtime.pause('silent', null)).toBe('done');
      // A daemon that says nothing is not dead either.
      signalDaemons('STOP');
      expect([await runtime.inspect('silent'), await runtime.liveness('silent')]).toEqual([
        'paused',
        'alive',
      ]);
      signalDaemons('CONT');
    } finally {
      cluster.script('in', 'node1', 'kill', '-CONT', kubelet);
    }
    await eventually(() => expect(seen()).toBe('True'), SLOWLY);
    expect(await runtime.end('silent')).toEqual({ outcome: 'killed' });
    await runtime.remove('silent');
  });

  it('a pool serves claims of its size at once, one each, and is refilled, shrunk and emptied', async () => {
    const pool = { size: 2, memory_mib: 256, cpu_millis: 100, disk_mib: 256 };
    const given = { ...SMALL, disk_mib: 256 };
    const kubeconfig = cluster.kubeconfigOf('sandbox-manager');
    const waiting = (...args: string[]) =>
      cluster
        .kubectl('-n', NAMESPACE, 'get', ...args, '-l', 'sandboxd.dev/pool')
        .split('\n')
        .slice(0, -1);
    const names = () => waiting('pvc', '-o', 'jsonpath={range .items[*]}{.metadata.name}{"\\n"}{end}');
    const up = (size: number) => async () => {
      const wanted = names();
      expect(wanted).toHaveLength(size);
      const running = waiting('pods', '--field-selector=status.phase=Running', '-o', 'name');
      expect(running).toEqual(expect.arrayContaining(wanted.map((name) => `pod/${name}`)));
    };
    const replica = async (of: SandboxTemplate) => {
      const made = runtimeOf(kubeconfig, new Map([['default', of]]));
      onTestFinished(() => made.stop());
      await made.start();
      return made;
    };
    const [one, other] = [
      await replica({ ...TEMPLATE, pool }),
      await replica({ ...TEMPLATE, pool }),
    ] as const;
    await eventually(up(2), SLOWLY);
    const made = await Promise.all([
      one.create(spec('first', { ...given, env: { WHO: 'first' } })),
      other.create(spec('second', given)),
    ]);
    const pods = made.map(({ pod_name }) => pod_name);
    expect(new Set(pods).size).toBe(2);
    expect(pods.every((name) => name.startsWith('pool-'))).toBe(true);
    expect((await one.list()).sort()).toEqual(['first', 'second']);
    expect([await other.inspect('first'), await other.liveness('first')]).toEqual(['running', 'alive']);
    expect(await output(other, 'first', 'echo $WHO')).toBe('first');
    const cores = '-o=jsonpath={.spec.containers[0].resources.limits.cpu}';
    expect(cluster.kubectl('-n', NAMESPACE, 'get', 'pod', pods[0] as string, cores)).toBe('100m');
    expect(await one.create(spec('large', { ...given, memory_mib: 320 }))).toEqual({
      ...{ pod_name: objectName('large'), persistence: 'volume' },
    });
    await eventually(up(2), SLOWLY);

    // Of two that take the same, one has it.
    const client = new ClusterClient(clusterAccess(kubeconfig, null));
    const [entry = ''] = names();
    const claim = await client.get<VolumeClaim>(client.path('persistentvolumeclaims', entry));
    const record = (sandbox_id: string) =>
      ({ sandbox_id, team_id: 'team_a', state: 'creating', template: 'default' }) as KubernetesRecord;
    const taken = await Promise.all(
      ['a', 'b'].map((id) => new Records(client).take((claim as VolumeClaim).metadata, record(id))),
    );
    client.close();
    expect(taken.filter((each) => each === null)).toHaveLength(1);
    const [winner = ''] = taken.flatMap((each) => each?.record.sandbox_id ?? []);
    await other.end(winner);

    // One that fails is removed and named, and another is made.
    await eventually(up(2), SLOWLY);
    const [failing = ''] = names();
    cluster.kubectl('-n', NAMESPACE, 'delete', 'pod', failing, '--grace-period=1');
    await eventually(async () => {
      expect(names()).not.toContain(failing);
      const failures = [one, other].flatMap(({ pool_metrics }) => pool_metrics.failures.samples());
      expect(failures.reduce((sum, { value }) => sum + value, 0)).toBeGreaterThan(0);
      await up(2)();
    }, SLOWLY);

    for (const id of ['first', 'second', 'large', winner]) {
      await other.end(id);
      await one.remove(id);
    }
    expect(await one.list()).toEqual([]);
    await one.stop();
    await other.stop();
    const smaller = await replica({ ...TEMPLATE, pool: { ...pool, size: 1 } });
    await eventually(up(1), SLOWLY);
    await smaller.stop();
    await replica({ ...TEMPLATE, work_dir: '/elsewhere' });
    await eventually(() => expect(objects()).toBe(''), SLOWLY);
  });

  // The last one: the node is not what it was.
  it('a sandbox on a node that loses power is lost, and read once the node says that it has ended', async () => {
    const consumer = await startConsumer(HOST_ADDRESS);
    consumer.answer = (_, response) => response.writeHead(503).end();
    await runtime.create(spec('dark', { ...webhook(consumer.url), ...SMALL }));
    const { event_id } = await ask(runtime, 'dark', 'POST', '/webhook/publish', { payload: {} });
    cluster.script('crash', 'node1');
    await eventually(async () => expect(await runtime.liveness('dark')).toBe('lost'), 60_000);
    expect(await runtime.inspect('dark')).toBe('lost');
    await expect(runtime.end('dark')).rejects.toMatchObject({ code: 'unavailable' });
    cluster.script('start', 'node1');
    expect(await eventually(() => runtime.end('dark'), SLOWLY)).toEqual({ outcome: 'lost' });
    const { records, lost } = await undeliveredRecord(runtime, 'dark');
    expect([records.map((each) => each.event_id).includes(event_id), lost]).toEqual([true, 0]);
  });
});
