import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import type { SandboxTemplate } from '../../../src/contract/templates.ts';
import { ClusterClient } from '../../../src/runtime/kubernetes/api/cluster-client.ts';
import { clusterAccess } from '../../../src/runtime/kubernetes/api/config-file.ts';
import type { VolumeClaim } from '../../../src/runtime/kubernetes/api/objects.ts';
import { KubernetesRuntime } from '../../../src/runtime/kubernetes/kubernetes-runtime.ts';
import { claimManifest, secretManifest } from '../../../src/runtime/kubernetes/manifests.ts';
import {
  labelsOf,
  objectName,
  RECORD_ANNOTATION,
  readerName,
} from '../../../src/runtime/kubernetes/names.ts';
import { annotationsOf, type KubernetesRecord } from '../../../src/runtime/kubernetes/records.ts';
import type { Fence, Runtime } from '../../../src/runtime/runtime.ts';
import { FakeApi, type Odd, refuse } from '../../support/kubernetes/fake-api.ts';
import { freezingRuntime } from '../../support/manager/freezing-runtime.ts';
import { TRUST } from '../../support/runtime/sandboxes.ts';

const ID = 'sbx_ended';
const NAME = objectName(ID);
const TEMPLATE: SandboxTemplate = {
  ...{ image: 'any:1', image_pull_secret: null, runtime_class: null, storage_class: null },
  ...{ user: 1000, work_dir: '/workspace', user_namespace: true, persistent_root: false, ephemeral_mib: 256 },
  ...{ resources: {}, pool: null },
};

/** A sandbox that has ended, whose Pod is gone, and a function that makes managers of it. */
async function ended(state: KubernetesRecord['state'] = 'ended', also: Partial<KubernetesRecord> = {}) {
  const api = await FakeApi.start();
  const client = new ClusterClient(clusterAccess(api.kubeconfig, null));
  onTestFinished(() => client.close());
  const annotations = annotationsOf({
    ...{ sandbox_id: ID, team_id: 'team_1', template: 'default', memory_mib: 256, cpu_millis: 100 },
    ...{ state, outcome: state === 'ended' ? 'killed' : null, persists: 'volume', is_paused: false },
    ...also,
  });
  const manifest = claimManifest({ disk_mib: 64 }, TEMPLATE, {
    ...{ name: NAME, labels: labelsOf(ID), annotations },
  });
  const { metadata } = await client.create<VolumeClaim>(client.path('persistentvolumeclaims'), manifest);
  await client.create(client.path('secrets'), secretManifest(metadata, Buffer.alloc(32)));
  const manager = async (templates = new Map([['default', TEMPLATE]])) => {
    const runtime = new KubernetesRuntime(
      {
        ...{ kubeconfig: api.kubeconfig, namespace: null, product_image: 'product:1' },
        ...{ injection: 'image-volume' as const, templates },
        webhook_cidrs: [],
      },
      systemClock,
      createLog('silent'),
    );
    onTestFinished(() => runtime.stop());
    await runtime.start();
    return runtime;
  };
  const madePods = () => api.asked.filter(({ method, kind, query }) => isMade(method, kind, query));
  return { api, client, manager, madePods };
}

const isMade = (method: string, kind: string, query: URLSearchParams) =>
  method === 'POST' && kind === 'pods' && !query.has('dryRun');

const removal =
  (kind: string): Odd =>
  (asked, response) => {
    if (asked.method !== 'DELETE' || asked.kind !== kind) return false;
    response.destroy();
    return true;
  };

it.each(['secrets', 'persistentvolumeclaims'])(
  'a removal that is cut off at the %s goes on, and nothing is read again',
  async (kind) => {
    const { api, manager, madePods } = await ended();
    api.odd = removal(kind);
    const first = await manager();
    await expect(first.remove(ID)).rejects.toMatchObject({ code: 'unavailable' });
    api.odd = () => false;
    const other = await manager();
    expect(await other.end(ID)).toEqual({ outcome: 'killed' });
    for await (const page of other.handOver(ID, { ...TRUST, lifecycle_after: 0 })) expect(page).toBeNull();
    await other.remove(ID);
    expect(madePods()).toEqual([]);
    expect(api.names()).toEqual([]);
  },
);

it('a Pod that reads a volume gets a key where somebody has removed that of its sandbox', async () => {
  const { api, client, manager, madePods } = await ended();
  await client.remove(client.path('secrets', NAME));
  api.odd = ({ method, kind, query }, response) =>
    isMade(method, kind, query) && refuse(response, 403, 'Forbidden', 'exceeded quota: pods');
  const runtime = await manager();
  const pages = runtime.handOver(ID, { ...TRUST, lifecycle_after: 0 })[Symbol.asyncIterator]();
  await expect(pages.next()).rejects.toMatchObject({ code: 'capacity_exhausted' });
  expect(madePods()).toMatchObject([{ body: { metadata: { name: readerName(NAME) } } }]);
  expect(api.names()).toContain(`secrets/${NAME}`);
});

const READER = { user: 2000, user_namespace: false, runtime_class: 'gvisor', image_pull_secret: 'registry' };

it.each<[string, Partial<KubernetesRecord>, Map<string, SandboxTemplate>, object]>([
  ['was removed', { reader: READER }, new Map(), READER],
  ['is another by now', { reader: READER }, new Map([['default', TEMPLATE]]), READER],
  ['was removed, of an older record', {}, new Map(), { user: 1000, user_namespace: true }],
  ['was removed, of an older root', { persists: 'root' }, new Map(), { user: 0, user_namespace: true }],
])(
  'the volume of a sandbox whose template %s is read all the same',
  async (_what, record, templates, read_by) => {
    const { api, manager, madePods } = await ended('ended', record);
    api.odd = ({ method, kind, query }, response) =>
      isMade(method, kind, query) && refuse(response, 403, 'Forbidden', 'exceeded quota: pods');
    const runtime = await manager(templates);
    const pages = runtime.handOver(ID, { ...TRUST, lifecycle_after: 0 })[Symbol.asyncIterator]();
    await expect(pages.next()).rejects.toMatchObject({ code: 'capacity_exhausted' });
    const [{ body } = { body: {} }] = madePods();
    const { spec } = body as { spec: Record<string, unknown> };
    const {
      securityContext,
      hostUsers,
      runtimeClassName = null,
      imagePullSecrets,
    } = spec as {
      securityContext: { runAsUser: number };
      hostUsers?: boolean;
      runtimeClassName?: string;
      imagePullSecrets?: { name: string }[];
    };
    expect({
      ...{ user: securityContext.runAsUser, user_namespace: hostUsers === false },
      ...{ runtime_class: runtimeClassName, image_pull_secret: imagePullSecrets?.[0]?.name ?? null },
    }).toEqual({ runtime_class: null, image_pull_secret: null, ...read_by });
  },
);

it('of a sandbox whose record is damaged nothing is kept that could be adopted, and it is still listed', async () => {
  const { client, manager } = await ended();
  const runtime = await manager();
  expect(await runtime.kept(ID)).toMatchObject({ team_id: 'team_1' });
  const path = client.path('persistentvolumeclaims', NAME);
  await client.patch(path, { metadata: { annotations: { [RECORD_ANNOTATION]: '{' } } });
  expect([await runtime.kept(ID), await runtime.list()]).toEqual([null, [ID]]);
  await expect(runtime.remove(ID)).rejects.toMatchObject({ code: 'internal_error' });
});

/** Everything of a deletion that reads nothing. */
async function cleanUp(runtime: Runtime, fence: Fence): Promise<void> {
  await runtime.end(ID, fence);
  await runtime.remove(ID, fence);
}

/** An operation of this number, whose replica's clock stands still; it says whether it was found to be another's. */
function numbered(number: number) {
  const fence = {
    number,
    is_lost: false,
    async check() {},
    lose() {
      fence.is_lost = true;
      return new Error('lost');
    },
  };
  return fence;
}

it('a replica that stands still at a step of a deletion leaves nothing once it goes on, after another took over', async () => {
  const steps: string[] = [];
  const first = await ended('created');
  await cleanUp(
    freezingRuntime(await first.manager(), async (step, moment) => {
      if (moment === 'before') steps.push(step);
    }),
    numbered(1),
  );
  expect(steps.length).toBeGreaterThan(4);
  for (const step of steps) {
    const { api, manager } = await ended('created');
    const [reached, thawed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const frozen = freezingRuntime(await manager(), async (at, moment) => {
      if (at !== step || moment !== 'after') return;
      reached.resolve();
      await thawed.promise;
    });
    const cleaning = cleanUp(frozen, numbered(1)).catch((error) => error);
    await reached.promise;
    const other = await manager();
    await other.fenceOff(ID, 2);
    await cleanUp(other, numbered(2));
    thawed.resolve();
    await cleaning;
    await other.end(ID);
    await other.remove(ID);
    expect([step, api.names()]).toEqual([step, []]);
  }
});

it('takes no step for an operation whose number is lower than that of one that was taken over', async () => {
  const { api, manager } = await ended('created');
  const runtime = await manager();
  await runtime.fenceOff(ID, 5);
  await runtime.fenceOff(ID, 3);
  const late = numbered(4);
  const asked = api.asked.length;
  for (const verb of [() => runtime.end(ID, late), () => runtime.remove(ID, late)]) {
    await expect(verb()).rejects.toThrow('lost');
  }
  expect(late.is_lost).toBe(true);
  expect(api.asked.slice(asked).filter(({ method }) => method !== 'GET')).toEqual([]);
  await cleanUp(runtime, numbered(5));
  expect(api.names()).toEqual([]);
});
