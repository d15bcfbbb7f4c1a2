import { expect, it } from 'vitest';
import type { QuotaPolicy } from '../../../src/contract/quotas.ts';
import { QuotaStore } from '../../../src/manager/quotas/quota-store.ts';
import { SandboxStore } from '../../../src/manager/sandboxes/sandbox-store.ts';
import { opened } from '../../support/manager/outbox.ts';
import { rowOf } from '../../support/manager/sandbox-rows.ts';
import { describeOnStores } from '../../support/stores.ts';

const capacity = (limit_value: number): QuotaPolicy => ({
  ...{ dimension: 'active_sandboxes', limit_value, interval_ms: null, burst_value: null },
});
const RATE: QuotaPolicy = { dimension: 'api_requests', limit_value: 5, interval_ms: 1_000, burst_value: 9 };

async function stores(url: string) {
  const database = await opened(url);
  return { quotas: new QuotaStore(database), sandboxes: new SandboxStore(database) };
}

describeOnStores('the store of quotas', (fresh) => {
  it("gives a team its own policies, otherwise the region's", async () => {
    const { quotas } = await stores(await fresh());
    await quotas.reconcile([capacity(10), RATE], []);
    await quotas.set('team_1', capacity(3));
    await quotas.set('team_1', capacity(4));
    const held = await quotas.policiesOf(quotas.db, 'team_1');
    expect(Object.fromEntries(held)).toEqual({
      active_sandboxes: { ...capacity(4), source: 'team_override' },
      api_requests: { ...RATE, source: 'region_default' },
    });
    expect((await quotas.policiesOf(quotas.db, 'team_2')).get('active_sandboxes')?.limit_value).toBe(10);
    await quotas.unset('team_1', 'active_sandboxes');
    await quotas.unset('team_1', 'active_sandboxes');
    expect((await quotas.policiesOf(quotas.db, 'team_1')).get('active_sandboxes')?.limit_value).toBe(10);
  });

  it('says once that a start is the first', async () => {
    const { quotas } = await stores(await fresh());
    const starts = [await quotas.reconcile(null, []), await quotas.reconcile([RATE], [])];
    expect(starts).toEqual([{ is_first: true }, { is_first: false }]);
  });

  it('counts starting and running sandboxes of a team as active', async () => {
    const { quotas, sandboxes } = await stores(await fresh());
    await sandboxes.write(async (tx) => {
      for (const status of ['starting', 'running', 'paused', 'terminating', 'failed'] as const) {
        await sandboxes.insert(tx, rowOf(status, { status }));
      }
      await sandboxes.insert(tx, rowOf('other', { team_id: 'team_2' }));
      // What the transaction wrote itself counts already.
      expect(await quotas.lockedActiveSandboxes(tx, 'team_1')).toBe(2);
    });
    expect(await quotas.activeSandboxes(quotas.db, 'team_1')).toBe(2);
    expect(await quotas.activeSandboxes(quotas.db, 'team_3')).toBe(0);
  });

  it('sums what the node gives: memory of all that hold some, cores of active ones, disk of all that are not gone', async () => {
    const { quotas, sandboxes } = await stores(await fresh());
    const none = { memory_mib: 0, cpu_millis: 0, disk_mib: 0, active: 0 };
    expect(await quotas.nodeUse(quotas.db, '')).toEqual(none);
    await sandboxes.write(async (tx) => {
      await sandboxes.insert(tx, rowOf('a', { memory_mib: 128, cpu_millis: 100 }));
      await sandboxes.insert(
        tx,
        rowOf('b', { memory_mib: 2 ** 31, cpu_millis: 250, team_id: 'team_2', disk_mib: 1024 }),
      );
      await sandboxes.insert(tx, rowOf('paused', { status: 'paused', disk_mib: 128, held_mib: 100 }));
      await sandboxes.insert(tx, rowOf('unknown', { status: 'paused' }));
      await sandboxes.insert(
        tx,
        rowOf('going', { status: 'terminating', operation: 'cleaning', held_mib: 90 }),
      );
      await sandboxes.insert(tx, rowOf('ended', { status: 'terminating', operation: 'removing' }));
      await sandboxes.insert(tx, rowOf('gone', { status: 'terminating', deleted_at_ms: 5 }));
    });
    expect(await quotas.nodeUse(quotas.db, '')).toEqual({
      memory_mib: 128 + 2 ** 31 + 100 + 512 + 90,
      cpu_millis: 350,
      disk_mib: 64 + 1024 + 128 + 3 * 64,
      active: 2,
    });
    expect(await quotas.nodeUse(quotas.db, 'b')).toEqual({
      memory_mib: 128 + 100 + 512 + 90,
      cpu_millis: 100,
      disk_mib: 64 + 128 + 3 * 64,
      active: 1,
    });
  });

  it('lets one transaction at a time count the sandboxes of a team', async () => {
    const { quotas, sandboxes } = await stores(await fresh());
    const LIMIT = 3;
    const admitted = await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        sandboxes.write(async (tx) => {
          if ((await quotas.lockedActiveSandboxes(tx, 'team_1')) >= LIMIT) return false;
          await sandboxes.insert(tx, rowOf(`sbx_${i}`));
          return true;
        }),
      ),
    );
    expect(admitted.filter(Boolean)).toHaveLength(LIMIT);
    expect(await quotas.activeSandboxes(quotas.db, 'team_1')).toBe(LIMIT);
  });
});
