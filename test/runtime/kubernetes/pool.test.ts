import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import type { SandboxTemplate } from '../../../src/contract/templates.ts';
import { KubernetesRuntime } from '../../../src/runtime/kubernetes/kubernetes-runtime.ts';
import { eventually } from '../../support/eventually.ts';
import { FakeApi } from '../../support/kubernetes/fake-api.ts';

const TEMPLATE: SandboxTemplate = {
  ...{ image: 'any:1', image_pull_secret: null, runtime_class: null, storage_class: 'nobody' },
  ...{ user: 1000, work_dir: '/workspace', user_namespace: true, persistent_root: false, ephemeral_mib: 256 },
  ...{ resources: {}, pool: { size: 1, memory_mib: 256, cpu_millis: 100, disk_mib: 256 } },
};

it('a pool whose volumes cannot be made gives up what waits, and says why, long before that takes too long', async () => {
  const api = await FakeApi.start();
  const message = 'storageclass.storage.k8s.io "nobody" not found';
  api.odd = ({ kind }, response) => {
    if (kind !== 'events') return false;
    const items = [{ metadata: { name: 'event' }, type: 'Warning', reason: 'ProvisioningFailed', message }];
    response.end(JSON.stringify({ metadata: { resourceVersion: '1' }, items }));
    return true;
  };
  const log = createLog('silent');
  const warnings: object[] = [];
  log.warn = (fields: object) => void warnings.push(fields);
  const runtime = new KubernetesRuntime(
    {
      ...{ kubeconfig: api.kubeconfig, namespace: null, product_image: 'product:1', injection: 'auto' },
      ...{ templates: new Map([['default', TEMPLATE]]), webhook_cidrs: [] },
    },
    systemClock,
    log,
  );
  onTestFinished(() => runtime.stop());
  await runtime.start();
  await eventually(
    () =>
      expect(warnings).toContainEqual({
        ...{ template: 'default', reason: `The sandbox's volume is not made: ${message}` },
      }),
    60_000,
  );
  await eventually(
    () => expect(runtime.pool_metrics.failures.samples()).toMatchObject([{ value: 1 }]),
    60_000,
  );
});
