import { expect, it, onTestFinished } from 'vitest';
import { ClusterClient } from '../../../src/runtime/kubernetes/api/cluster-client.ts';
import { clusterAccess } from '../../../src/runtime/kubernetes/api/config-file.ts';
import { processLimitations } from '../../../src/runtime/kubernetes/node-limits.ts';
import { FakeApi, refuse } from '../../support/kubernetes/fake-api.ts';

const WHAT = 'how many processes a Pod may have (podPidsLimit of the kubelet)';
const UNKNOWN = `${WHAT} is the nodes' to bound, and not known to the manager`;

/** What is said of nodes with these bounds; `null`: one that does not answer. */
async function said(limits: (number | null | string)[] | 'forbidden') {
  const api = await FakeApi.start();
  const client = new ClusterClient(clusterAccess(api.kubeconfig, null));
  onTestFinished(() => client.close());
  api.odd = ({ path }, response) => {
    if (limits === 'forbidden') return refuse(response, 403, 'Forbidden', 'nodes is forbidden');
    const [, node] = /^\/api\/v1\/nodes\/node(\d)\/proxy\/configz$/.exec(path) ?? [];
    if (node === undefined) {
      const items = limits.map((_, index) => ({ metadata: { name: `node${index}` } }));
      response.end(JSON.stringify({ metadata: { resourceVersion: '1' }, items }));
      return true;
    }
    const podPidsLimit = limits[Number(node)];
    if (podPidsLimit === null) return refuse(response, 503, 'ServiceUnavailable', 'no route to host');
    response.end(JSON.stringify({ kubeletconfig: { podPidsLimit } }));
    return true;
  };
  return processLimitations(client);
}

it.each<[string, Parameters<typeof said>[0], string[]]>([
  ['that may not be asked', 'forbidden', [UNKNOWN]],
  ['that do not answer', [null, 'odd'], [UNKNOWN]],
  ['of which there are none', [], [UNKNOWN]],
  ['that bound them', [4096, null, 512], []],
  ['of which two do not', [-1, 512, 0], [`${WHAT} is not bounded on node0, node2`]],
])('of nodes %s it is said whether they bound the processes of a Pod', async (_which, limits, expected) => {
  expect(await said(limits)).toEqual(expected);
});
