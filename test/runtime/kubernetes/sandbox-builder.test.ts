import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import type { SandboxTemplate } from '../../../src/contract/templates.ts';
import { KubernetesRuntime } from '../../../src/runtime/kubernetes/kubernetes-runtime.ts';
import { FakeApi, type Odd, refuse } from '../../support/kubernetes/fake-api.ts';
import { spec, webhook } from '../../support/runtime/sandboxes.ts';

const TEMPLATE: SandboxTemplate = {
  ...{ image: 'any:1', image_pull_secret: null, runtime_class: null, storage_class: 'nobody' },
  ...{ user: 1000, work_dir: '/workspace', user_namespace: true, persistent_root: false, ephemeral_mib: 256 },
  ...{ resources: { cpu: 0.5 }, pool: null },
};

const made = (kind: string, answer: (to: Parameters<Odd>[1]) => unknown): Odd => {
  return (asked, response) => {
    if (asked.method !== 'POST' || asked.kind !== kind || asked.query.has('dryRun')) return false;
    answer(response);
    return true;
  };
};

const events =
  (message: string): Odd =>
  ({ kind }, response) => {
    if (kind !== 'events') return false;
    const items = [{ metadata: { name: 'event' }, type: 'Warning', reason: 'ProvisioningFailed', message }];
    response.end(JSON.stringify({ metadata: { resourceVersion: '1' }, items }));
    return true;
  };

async function runtimeOn(api: FakeApi): Promise<KubernetesRuntime> {
  const runtime = new KubernetesRuntime(
    {
      ...{ kubeconfig: api.kubeconfig, namespace: null, product_image: 'product:1', injection: 'auto' },
      ...{ templates: new Map([['default', TEMPLATE]]), webhook_cidrs: [] },
    },
    systemClock,
    createLog('silent'),
  );
  onTestFinished(() => runtime.stop());
  await runtime.start();
  return runtime;
}

it('a claim gets the resources of its template, which must be one of the configured', async () => {
  const runtime = await runtimeOn(await FakeApi.start());
  expect(runtime.resourcesOf('default')).toEqual({ cpu: 0.5 });
  expect(() => runtime.resourcesOf('constructor')).toThrow('template: is not one of the configured');
});

it('a sandbox with block-all is marked in its Pod, or refused where policies do not hold it', async () => {
  const api = await FakeApi.start();
  const runtime = await runtimeOn(api);
  expect(runtime.networks.state()).toMatchObject({ mode: 'host-unmetered', block_all: 'network_policy' });
  const create = () =>
    runtime.create(spec('sbx-1', { ...webhook('https://u.example/hook'), network_mode: 'block-all' }));
  api.odd = made('pods', (to) => refuse(to, 403, 'Forbidden', 'exceeded quota: none'));
  await expect(create()).rejects.toMatchObject({ code: 'capacity_exhausted' });
  const pod = api.asked.findLast(({ method, kind }) => method === 'POST' && kind === 'pods');
  expect(pod?.body.metadata).toMatchObject({
    labels: { 'sandboxd.dev/network': 'block-all', 'app.kubernetes.io/managed-by': 'sandbox-manager' },
    annotations: { 'sandboxd.dev/webhook': 'u.example:443' },
  });
  api.policies = api.policies.filter(({ metadata }) => metadata.name !== 'sandboxes-block-all');
  const before = api.asked.length;
  await expect(create()).rejects.toMatchObject({
    code: 'invalid_request',
    message:
      'config.network.mode: is not enforced here: no network policy keeps Pods with the label sandboxd.dev/network=block-all from sending',
    details: { field: 'config.network.mode' },
  });
  expect(api.asked.slice(before).filter(({ method }) => method === 'POST')).toEqual([]);
  expect(api.names()).toEqual([]);
});

it.each<[string, Odd, string, string | RegExp]>([
  [
    'a claim smaller than the namespace allows',
    made('persistentvolumeclaims', (to) =>
      refuse(
        to,
        403,
        'Forbidden',
        'persistentvolumeclaims "sb" is forbidden: minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 64Mi',
      ),
    ),
    'invalid_request',
    'config.resources.disk: is refused by the cluster: minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 64Mi',
  ],
  [
    'a quota of volumes',
    made('persistentvolumeclaims', (to) =>
      refuse(to, 403, 'Forbidden', 'exceeded quota: disks, requested: 1'),
    ),
    'capacity_exhausted',
    'The namespace has no room: exceeded quota: disks, requested: 1',
  ],
  [
    'a right withdrawn since the start',
    made('secrets', (to) => refuse(to, 403, 'Forbidden', 'User "m" cannot create resource "secrets"')),
    'internal_error',
    'The cluster refuses the sandbox: User "m" cannot create resource "secrets"',
  ],
  [
    'a page instead of a secret',
    made('secrets', (to) => to.end('<html>')),
    'unavailable',
    /its answer is not JSON/,
  ],
  [
    'half of the answer to a Pod',
    made('pods', (to) => to.end('{"metadata":{"name":"s')),
    'unavailable',
    /its answer is not JSON/,
  ],
  [
    'a namespace that was removed',
    made('pods', (to) => refuse(to, 404, 'NotFound', 'namespaces "here" not found')),
    'internal_error',
    'The cluster refuses the sandbox: namespaces "here" not found',
  ],
  [
    'a storage class that is missing',
    events('storageclass.storage.k8s.io "nobody" not found'),
    'internal_error',
    'The sandbox\'s volume is not made: storageclass.storage.k8s.io "nobody" not found',
  ],
  [
    'a volume that the storage cannot have so small',
    events('failed to provision: rpc error: code = OutOfRange desc = at least 1Gi'),
    'invalid_request',
    /^config.resources.disk: is refused by the storage of the cluster: .* at least 1Gi$/,
  ],
])('of %s nothing is left but one line', async (_what, odd, code, message) => {
  const api = await FakeApi.start();
  api.odd = odd;
  const runtime = await runtimeOn(api);
  await expect(runtime.create(spec('Odd_id.v2', { template_id: 'default' }))).rejects.toMatchObject({
    code,
    message: typeof message === 'string' ? message : expect.stringMatching(message),
  });
  expect(api.names()).toEqual([]);
});
