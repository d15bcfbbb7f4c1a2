import { expect, it } from 'vitest';
import type { SandboxTemplate } from '../../../src/contract/templates.ts';
import type { Injection } from '../../../src/runtime/kubernetes/injection.ts';
import { podManifest, readerManifest } from '../../../src/runtime/kubernetes/manifests.ts';

interface MadeContainer {
  name: string;
  resources: { requests: Record<string, string>; limits: Record<string, string> };
  volumeMounts: { name: string; mountPath: string }[];
}

interface MadePod {
  spec: {
    containers: MadeContainer[];
    initContainers?: MadeContainer[];
    volumes: { name: string; emptyDir?: { sizeLimit?: string } }[];
  };
}

const TEMPLATE: SandboxTemplate = {
  ...{ image: 'any:1', image_pull_secret: null, runtime_class: null, storage_class: null },
  ...{ user: 1000, work_dir: '/workspace', user_namespace: true, persistent_root: false, ephemeral_mib: 300 },
  ...{ resources: {}, pool: null },
};
const OWNER = { name: 'sb-1', uid: 'u', resourceVersion: '1' };
const SIZE = { memory_mib: 256, cpu_millis: 100 };

const podOf = (template: SandboxTemplate, injection: Injection) =>
  podManifest(SIZE, OWNER, template, { product_image: 'product:1', injection }, false) as unknown as MadePod;
const mib = (size = '') => Number(/^(\d+)Mi$/.exec(size)?.[1]);

const CASES = (['image-volume', 'init-container'] as const).flatMap((injection) =>
  [TEMPLATE, { ...TEMPLATE, work_dir: '/tmp' }, { ...TEMPLATE, user: 0, persistent_root: true }].map(
    (template) => [injection, template] as const,
  ),
);

it.each(CASES)(
  'what a Pod writes on its node is reserved and bounded in every container (%s, %#)',
  (injection, template) => {
    const settings = { product_image: 'product:1', injection };
    const reader = readerManifest(OWNER, template, settings) as unknown as MadePod;
    for (const { spec } of [podOf(template, injection), reader]) {
      for (const { resources } of [...spec.containers, ...(spec.initContainers ?? [])]) {
        const { requests, limits } = resources;
        expect(mib(requests['ephemeral-storage'])).toBeGreaterThanOrEqual(64);
        expect(limits['ephemeral-storage']).toBe(requests['ephemeral-storage']);
      }
      // A node counts them together, and each volume of its own has a bound.
      const allowed = spec.containers.map(({ resources }) => mib(resources.limits['ephemeral-storage']));
      const folders = spec.volumes.flatMap(({ emptyDir }) => emptyDir ?? []);
      for (const { sizeLimit } of folders) expect(mib(sizeLimit)).toBeGreaterThan(0);
      const taken = folders.reduce((sum, { sizeLimit }) => sum + mib(sizeLimit), 0);
      expect(allowed.reduce((sum, each) => sum + each, 0)).toBeGreaterThanOrEqual(taken);
    }
  },
);

it('where the root does not persist /tmp is a volume with a bound, unless it is the folder of the sandbox', () => {
  const tmp = (template: SandboxTemplate) => {
    const { containers, volumes } = podOf(template, 'image-volume').spec;
    const mounts = containers[0]?.volumeMounts.filter(({ mountPath }) => mountPath === '/tmp');
    return [mounts?.map(({ name }) => name), volumes.find(({ name }) => name === 'tmp')?.emptyDir];
  };
  expect(tmp(TEMPLATE)).toEqual([['tmp'], { sizeLimit: '300Mi' }]);
  expect(tmp({ ...TEMPLATE, work_dir: '/tmp' })).toEqual([['data'], undefined]);
  expect(tmp({ ...TEMPLATE, user: 0, persistent_root: true })).toEqual([[], undefined]);
});
