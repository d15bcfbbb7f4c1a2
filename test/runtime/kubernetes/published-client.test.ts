import { afterAll, beforeAll, describe, it, vi } from 'vitest';
import { TestCluster, whyNoLongTests } from '../../support/kubernetes/cluster.ts';
import { ClusterManager } from '../../support/kubernetes/cluster-manager.ts';
import { usePublishedClient } from '../../support/manager/published-client.ts';

vi.setConfig({ testTimeout: 400_000, hookTimeout: 400_000 });

const why_not = whyNoLongTests();
if (why_not !== null) console.log(`skipped, the published client on a cluster: ${why_not}`);

describe.skipIf(why_not !== null)('on a cluster', () => {
  let cluster: TestCluster;

  beforeAll(async () => {
    cluster = await TestCluster.start();
  });

  afterAll(async () => {
    await cluster?.stop();
  });

  it('the published client of this API works unchanged, from claim to deletion', async () => {
    const { program, token } = await ClusterManager.start(cluster);
    await usePublishedClient({ url: program().url, token }, '/workspace/work');
  });
});
