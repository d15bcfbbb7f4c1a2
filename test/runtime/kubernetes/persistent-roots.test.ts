import { expect, it } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import type { SandboxTemplate } from '../../../src/contract/templates.ts';
import { ClusterClient } from '../../../src/runtime/kubernetes/api/cluster-client.ts';
import { clusterAccess } from '../../../src/runtime/kubernetes/api/config-file.ts';
import { PersistentRoots } from '../../../src/runtime/kubernetes/persistent-roots.ts';
import { FakeApi, type Odd, refuse } from '../../support/kubernetes/fake-api.ts';

const PLAIN: SandboxTemplate = {
  ...{ image: 'any:1', image_pull_secret: null, runtime_class: null, storage_class: null },
  ...{ user: 0, work_dir: '/workspace', user_namespace: true, persistent_root: false, ephemeral_mib: 256 },
  ...{ resources: {}, pool: null },
};
const TEMPLATES = new Map([
  ['plain', PLAIN],
  ['whole', { ...PLAIN, persistent_root: true }],
]);

async function checked(odd: Odd) {
  const api = await FakeApi.start();
  api.odd = odd;
  const client = new ClusterClient(clusterAccess(api.kubeconfig, null));
  const settings = { product_image: 'product:1', injection: 'image-volume' } as const;
  const roots = new PersistentRoots({ client, templates: TEMPLATES, settings, log: createLog('silent') });
  try {
    const limitations = await roots.check();
    return { limitations, persists: roots.templates.get('whole')?.persistent_root, api };
  } finally {
    client.close();
  }
}

it('a root persists where the cluster would make such a Pod, and nothing is made to find out', async () => {
  const { limitations, persists, api } = await checked(() => false);
  expect([limitations, persists, api.names()]).toEqual([[], true, []]);
  expect(api.asked.map(({ kind, query }) => [kind, query.get('dryRun')])).toEqual([['pods', 'All']]);
});

it.each<[string, Odd, string | RegExp]>([
  [
    'the namespace forbids mounts',
    (_, response) =>
      refuse(response, 403, 'Forbidden', `violates PodSecurity:\n  ${'a long story '.repeat(99)}`),
    /^only the volume of the template whole persists: violates PodSecurity: a long story [^\n]{1,300}$/,
  ],
  [
    'an old cluster drops what it does not know',
    ({ body: { spec, ...body } }, response) => {
      response.end(JSON.stringify({ ...body, spec: { ...spec, hostUsers: undefined } }));
      return true;
    },
    'only the volume of the template whole persists: the cluster has no user namespaces for Pods',
  ],
])('where %s the volume alone persists, and one line says why', async (_case, odd, limitation) => {
  const { limitations, persists } = await checked(odd);
  expect(limitations).toEqual([
    typeof limitation === 'string' ? limitation : expect.stringMatching(limitation),
  ]);
  expect(persists).toBe(false);
});

it('a namespace that is full today forbids nothing', async () => {
  const full: Odd = (_, response) => refuse(response, 403, 'Forbidden', 'exceeded quota: none');
  expect(await checked(full)).toMatchObject({ limitations: [], persists: true });
});

it('a cluster that does not answer ends the start with one line', async () => {
  await expect(checked((_, response) => Boolean(response.end('<html>')))).rejects.toMatchObject({
    name: 'StartError',
    message: '--runtime kubernetes: The Kubernetes API does not answer (its answer is not JSON).',
  });
});
