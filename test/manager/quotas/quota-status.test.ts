import { expect, it } from 'vitest';
import { DIMENSIONS } from '../../../src/contract/words.ts';
import { quotaStatus, quotaStatuses } from '../../../src/manager/quotas/quota-status.ts';
import { QuotaStore } from '../../../src/manager/quotas/quota-store.ts';
import { SandboxStore } from '../../../src/manager/sandboxes/sandbox-store.ts';
import { opened } from '../../support/manager/outbox.ts';
import { rowOf } from '../../support/manager/sandbox-rows.ts';
import { describeOnStores } from '../../support/stores.ts';

describeOnStores('the status of quotas', (fresh) => {
  it('has every dimension in order, unlimited where there is no policy', async () => {
    const store = new QuotaStore(await opened(await fresh()));
    const statuses = await quotaStatuses(store, 'team_1');
    expect(statuses.map(({ dimension }) => dimension)).toEqual([...DIMENSIONS]);
    for (const { unlimited, source, limit_value, remaining } of statuses) {
      expect({ unlimited, source, limit_value, remaining }).toEqual({
        ...{ unlimited: true, source: 'unlimited', limit_value: null, remaining: null },
      });
    }
    expect(statuses.map(({ current }) => current)).toEqual([0, null, null, null, null]);
  });

  it('says what remains, never below 0', async () => {
    const database = await opened(await fresh());
    const [store, sandboxes] = [new QuotaStore(database), new SandboxStore(database)];
    await sandboxes.write(async (tx) => {
      for (const id of ['a', 'b', 'c']) await sandboxes.insert(tx, rowOf(id));
    });
    for (const [limit_value, remaining] of [
      [5, 2],
      [3, 0],
      [2, 0],
      [0, 0],
    ] as const) {
      const policy = {
        dimension: 'active_sandboxes',
        limit_value,
        interval_ms: null,
        burst_value: null,
      } as const;
      await store.set('team_1', policy);
      expect(await quotaStatus(store, 'team_1', 'active_sandboxes')).toMatchObject({
        ...{ limit_value, remaining, current: 3, unlimited: false, source: 'team_override', unit: 'count' },
      });
    }
  });
});
