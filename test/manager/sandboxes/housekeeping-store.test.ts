import { expect, it } from 'vitest';
import { NetworkPositionStore } from '../../../src/manager/usage/network-position-store.ts';
import { momentAt } from '../../support/manager/manual-time.ts';
import { rowOf, storeWith } from '../../support/manager/sandbox-rows.ts';
import { describeOnStores } from '../../support/stores.ts';

describeOnStores('the store of the housekeeping', (fresh) => {
  it('finds the sandboxes that have expired, and when the next one does', async () => {
    const { housekeeping } = await storeWith(
      await fresh(),
      rowOf('soft', { expires_at_ms: 10 }),
      rowOf('soft-paused', { expires_at_ms: 10, status: 'paused' }),
      rowOf('soft-later', { expires_at_ms: 60 }),
      rowOf('idle', { idle_expires_at_ms: 20 }),
      rowOf('idle-paused', { idle_expires_at_ms: 10, status: 'paused' }),
      rowOf('idle-later', { idle_expires_at_ms: 55 }),
      rowOf('hard', { hard_expires_at_ms: 10 }),
      rowOf('hard-failed', { hard_expires_at_ms: 10, status: 'failed' }),
      rowOf('hard-busy', { hard_expires_at_ms: 10, operation: 'forking' }),
      rowOf('hard-going', { hard_expires_at_ms: 10, status: 'terminating', operation: 'cleaning' }),
      rowOf('hard-later', { hard_expires_at_ms: 50, status: 'paused' }),
    );
    const { rows, next_in_ms } = await housekeeping.expired(momentAt(20), 100, []);
    expect(rows.map(({ sandbox_id }) => sandbox_id).sort()).toEqual(['hard', 'hard-failed', 'idle', 'soft']);
    expect(next_in_ms).toBe(30);
    expect((await housekeeping.expired(momentAt(50), 100, [])).next_in_ms).toBe(5);
    expect((await housekeeping.expired(momentAt(5), 100, [])).next_in_ms).toBe(5);
  });

  it('purges what is gone, which nobody sees any more, with its traffic', async () => {
    const { store, housekeeping, database } = await storeWith(
      await fresh(),
      rowOf('gone', { deleted_at_ms: 10 }),
      rowOf('here'),
    );
    const positions = new NetworkPositionStore(database);
    const nothing = { usage: '{}', seen_ms: 0, egress_counted: 0, ingress_counted: 0, counted_until_ms: 0 };
    for (const sandbox_id of ['gone', 'here']) {
      await store.write(async (tx) => {
        await positions.insert(tx, { sandbox_id, team_id: 'team_1', ...nothing });
      });
    }
    expect(await store.find(store.db, 'gone', 'team_1')).toBeNull();
    expect(await store.list('team_1', { limit: 10, offset: 0 })).toMatchObject({ count: 1 });
    expect(await housekeeping.purge(10, 100)).toBe(0);
    expect(await housekeeping.purge(11, 100)).toBe(1);
    expect(await housekeeping.purge(11, 100)).toBe(0);
    const left = await positions.find(['gone', 'here']);
    expect(left.map(({ sandbox_id }) => sandbox_id)).toEqual(['here']);
  });
});
