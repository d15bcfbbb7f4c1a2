import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import type { SandboxTemplate } from '../../../src/contract/templates.ts';
import type { Injection } from '../../../src/runtime/kubernetes/injection.ts';
import { KubernetesRuntime } from '../../../src/runtime/kubernetes/kubernetes-runtime.ts';
import { objectName } from '../../../src/runtime/kubernetes/names.ts';
import { IMAGE, NAMESPACE, TestCluster, whyNoLongTests } from '../../support/kubernetes/cluster.ts';
import { output, SMALL } from '../../support/runtime/conformance.ts';
import { spec } from '../../support/runtime/sandboxes.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const why_not = whyNoLongTests();
if (why_not !== null) console.log(`skipped, tests of how the program gets into Pods: ${why_not}`);

const TEMPLATE: SandboxTemplate = {
  ...{ image: IMAGE, image_pull_secret: null, runtime_class: null, storage_class: null },
  ...{ user: 1000, work_dir: '/workspace', user_namespace: true, persistent_root: false, ephemeral_mib: 256 },
  ...{ resources: {}, pool: null },
};
const TEMPLATES = new Map([
  ['default', TEMPLATE],
  // Where files of the tree are its own.
  ['root', { ...TEMPLATE, user: 0 }],
  ['copier', { ...TEMPLATE, user: 65_501 }],
  ['no-class', { ...TEMPLATE, storage_class: 'nobody' }],
  ['no-runtime', { ...TEMPLATE, runtime_class: 'nobody' }],
  ['pause', { ...TEMPLATE, image: 'docker.io/local/pause:1' }],
]);
const INJECTIONS: Injection[] = ['image-volume', 'init-container'];

describe.skipIf(why_not !== null)('on a real cluster', () => {
  let cluster: TestCluster;
  const runtimes: KubernetesRuntime[] = [];

  const runtimeOf = async (injection: Injection, product_image = IMAGE) => {
    const kubeconfig = cluster.kubeconfigOf('sandbox-manager');
    const options = { kubeconfig, namespace: null, product_image, injection, templates: TEMPLATES };
    const runtime = new KubernetesRuntime(
      { ...options, webhook_cidrs: [] },
      systemClock,
      createLog('silent'),
    );
    await runtime.start();
    runtimes.push(runtime);
    return runtime;
  };
  const objects = () => cluster.kubectl('-n', NAMESPACE, 'get', 'pods,pvc,secrets', '-o', 'name');

  beforeAll(async () => {
    cluster = await TestCluster.start();
    // A template with `user: 0` is not for a namespace that is `restricted`.
    cluster.kubectl('label', 'ns', NAMESPACE, 'pod-security.kubernetes.io/enforce=baseline', '--overwrite');
  });

  afterEach(async () => {
    for (const runtime of runtimes.splice(0)) {
      for (const sandbox_id of await runtime.list()) await runtime.remove(sandbox_id);
      await runtime.stop();
    }
  });

  afterAll(async () => {
    await cluster?.stop();
  });

  describe.each(INJECTIONS)('with the program by %s', (injection) => {
    it.each(['default', 'root', 'copier'])(
      'nobody in a sandbox of template %s can read Node, change a part of the program, or move it away',
      async (template_id) => {
        const runtime = await runtimeOf(injection);
        await runtime.create(spec('program', { ...SMALL, template_id }));
        const script = [
          'cd /.sandboxd/usr/local/lib/sandboxd || echo missing',
          'dd if=node of=/dev/null count=1 2>/dev/null && echo "read node"',
          'chmod 0755 node 2>/dev/null && echo "changed a mode"',
          'touch sandboxd.cjs 2>/dev/null && echo "changed a file"',
          'rm -f sandboxd.cjs 2>/dev/null; [ -e sandboxd.cjs ] || echo "removed a file"',
          'mv /.sandboxd /moved 2>/dev/null && echo "moved the mount"',
          'mv /.sandboxd/usr /.sandboxd/gone 2>/dev/null && echo "moved a folder"',
          'ls -A /.sandboxd | grep -qx usr || echo "lost the folder"',
          'for process in /proc/[0-9]*; do',
          '  case "$(tr "\\0" " " <$process/cmdline)" in /.sandboxd/*) echo daemon;; *) continue;; esac',
          '  (true <$process/mem) 2>/dev/null && echo "opened the memory of the daemon"',
          '  cat $process/maps >/dev/null 2>&1 && echo "read the maps of the daemon"',
          'done; true',
        ].join('\n');
        expect((await output(runtime, 'program', script)).trim()).toBe('daemon');
      },
    );
  });

  it('the copy costs a Pod what the program takes, and belongs to nobody in the sandbox', async () => {
    const runtime = await runtimeOf('init-container');
    await runtime.create(spec('copy', { ...SMALL }));
    const seen = await output(
      runtime,
      'copy',
      'stat -c "%a %u" /.sandboxd/usr/local/lib/sandboxd/node; find /.sandboxd -user 1000',
    );
    expect(seen.trim()).toBe('111 65501');
  });

  it('in a namespace that is restricted the copy is allowed as well, and a template of root is named', async () => {
    const enforce = (level: string) =>
      cluster.kubectl('label', 'ns', NAMESPACE, `pod-security.kubernetes.io/enforce=${level}`, '--overwrite');
    enforce('restricted');
    try {
      const runtime = await runtimeOf('init-container');
      await runtime.create(spec('restricted', { ...SMALL }));
      expect(await runtime.inspect('restricted')).toBe('running');
      expect(runtime.limitations().join('\n')).toMatch(
        /the cluster refuses Pods of template root: .*runAsUser=0/,
      );
    } finally {
      enforce('baseline');
    }
  });

  it.each<[string, Injection, object, string, string, RegExp]>([
    [
      'a storage class that is missing',
      ...(['image-volume', { template_id: 'no-class' }, IMAGE, 'internal_error'] as const),
      /^The sandbox's volume is not made: storageclass\.storage\.k8s\.io "nobody" not found$/,
    ],
    [
      'a runtime class that is missing',
      ...(['image-volume', { template_id: 'no-runtime' }, IMAGE, 'internal_error'] as const),
      /^The cluster refuses the sandbox: .*RuntimeClass "nobody" not found$/,
    ],
    [
      'a product image without a shell to copy with',
      ...(['init-container', {}, 'docker.io/local/pause:1', 'internal_error'] as const),
      /program: .*\/bin\/sh/,
    ],
    [
      'a product image that is missing',
      ...(['init-container', {}, '127.0.0.1:1/missing:1', 'internal_error'] as const),
      /program: ErrImagePull|program: ImagePullBackOff/,
    ],
  ])('of %s nothing is left but one line', async (_case, injection, given, image, code, message) => {
    const runtime = await runtimeOf(injection, image);
    await expect(runtime.create(spec('refused', { ...SMALL, ...given }))).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
    expect(objects()).toBe('');
  });

  it('a volume outside of what the namespace allows is 400 with its field', async () => {
    const range = JSON.stringify({
      ...{ apiVersion: 'v1', kind: 'LimitRange', metadata: { name: 'disks', namespace: NAMESPACE } },
      spec: { limits: [{ type: 'PersistentVolumeClaim', min: { storage: '100Gi' } }] },
    });
    cluster.apply(range);
    try {
      const runtime = await runtimeOf('image-volume');
      await expect(runtime.create(spec('small', { ...SMALL }))).rejects.toMatchObject({
        code: 'invalid_request',
        message: expect.stringMatching(
          /^config\.resources\.disk: is refused by the cluster: minimum storage usage/,
        ),
      });
      expect(objects()).toBe('');
    } finally {
      cluster.kubectl('-n', NAMESPACE, 'delete', 'limitrange', 'disks');
    }
  });

  it('an id that is no DNS name, as long as ids may be, names no object', async () => {
    const sandbox_id = `Odd_id.${'X'.repeat(57)}`;
    const runtime = await runtimeOf('image-volume');
    await runtime.create(spec(sandbox_id, { ...SMALL }));
    expect([await runtime.list(), await runtime.inspect(sandbox_id)]).toEqual([[sandbox_id], 'running']);
    expect(objects()).toContain(`pod/${objectName(sandbox_id)}`);
    await runtime.remove(sandbox_id);
    expect(objects()).toBe('');
  });

  it('a namespace that is missing is told at the start', async () => {
    const options = { kubeconfig: cluster.kubeconfig, namespace: 'missing', product_image: IMAGE };
    const rest = { injection: 'auto' as const, templates: TEMPLATES, webhook_cidrs: [] };
    const runtime = new KubernetesRuntime({ ...options, ...rest }, systemClock, createLog('silent'));
    await expect(runtime.start()).rejects.toThrow(
      '--runtime kubernetes: the namespace missing does not exist',
    );
    await runtime.stop();
  });
});
