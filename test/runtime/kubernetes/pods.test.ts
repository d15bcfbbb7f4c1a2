import { expect, it, onTestFinished } from 'vitest';
import { ClusterClient } from '../../../src/runtime/kubernetes/api/cluster-client.ts';
import { clusterAccess } from '../../../src/runtime/kubernetes/api/config-file.ts';
import type { Pod } from '../../../src/runtime/kubernetes/api/objects.ts';
import { Pods } from '../../../src/runtime/kubernetes/pods.ts';
import { eventually } from '../../support/eventually.ts';
import { FakeApi } from '../../support/kubernetes/fake-api.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const containerStatuses = ['sandbox', 'keeper'].map((name) => ({ name, state: { running: {} } }));

async function opened(pod: Pod) {
  const api = await FakeApi.start();
  const clock = new ManualClock();
  const client = new ClusterClient(clusterAccess(api.kubeconfig, null));
  onTestFinished(() => client.close());
  await client.create(client.path('pods'), pod);
  return { api, clock, pods: new Pods(client, clock) };
}

function podOf(status: Pod['status']): Pod {
  return {
    metadata: { name: 'sb-1', uid: 'u', resourceVersion: '1' },
    spec: {},
    ...(status ? { status } : {}),
  };
}

it('a watch that says nothing any more is not believed for ever', async () => {
  const { api, clock, pods } = await opened(podOf({}));
  let now = podOf({ phase: 'Pending' });
  api.odd = ({ method, kind, query }, response) => {
    if (method !== 'GET' || kind !== 'pods') return false;
    if (query.has('watch')) response.flushHeaders();
    else response.end(JSON.stringify(now));
    return true;
  };
  const up = pods.untilUp(now);
  const watched = () => api.asked.filter(({ query }) => query.has('watch')).length;
  await eventually(() => expect(watched()).toBe(1));
  now = podOf({ phase: 'Running', podIP: '10.0.0.1', containerStatuses });
  await clock.advance(30_000);
  expect(await up).toBe('10.0.0.1');
});

it.each([
  ['that the cluster hears of', 60_000, 'True'],
  ['that the cluster does not hear of', 5_000, 'False'],
] as const)('the end of a Pod on a node %s is waited for %i ms', async (_node, within_ms, status) => {
  const pod = podOf({ phase: 'Running', conditions: [{ type: 'Ready', status }], containerStatuses });
  const { api, clock, pods } = await opened(pod);
  // Asked to go, it stays: no node says that it has ended.
  api.odd = ({ method, kind, query }, response) => {
    if (kind !== 'pods' || query.has('watch')) return false;
    response.end(JSON.stringify(method === 'GET' ? pod : { metadata: {} }));
    return true;
  };
  let removed: boolean | undefined;
  const removing = pods.remove('sb-1', 1, 60_000).then((is_removed) => (removed = is_removed));
  await eventually(() => expect(clock.timers).toBeGreaterThan(0));
  await clock.advance(within_ms - 1_000);
  expect(removed).toBeUndefined();
  await eventually(async () => {
    await clock.advance(1_000);
    expect(removed).toBe(false);
  });
  await removing;
});
