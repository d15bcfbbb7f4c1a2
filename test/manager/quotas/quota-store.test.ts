import { expect, it } from 'vitest';
import type { QuotaPolicy } from '../../../src/contract/quotas.ts';
import { NOTHING_TAKEN, QuotaStore, sumOf } from '../../../src/manager/quotas/quota-store.ts';
import { SandboxStore } from '../../../src/manager/sandboxes/sandbox-store.ts';
import { opened } from '../../support/manager/outbox.ts';
import { plansOf } from '../../support/manager/query-plans.ts';
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
    const none = { ...NOTHING_TAKEN };
    const useBeside = (sandbox_id: string, team_id: string) =>
      quotas.nodeUse(quotas.db, { sandbox_id, team_id });
    expect(await useBeside('a', 'team_1')).toEqual({ node: none, team: none, own: null });
    await sandboxes.write(async (tx) => {
      await sandboxes.insert(tx, rowOf('a', { memory_mib: 128, cpu_millis: 100 }));
      const large = { memory_mib: 2 ** 31, cpu_millis: 250, disk_mib: 1024 };
      await sandboxes.insert(tx, rowOf('b', { ...large, team_id: 'team_2' }));
      await sandboxes.insert(tx, rowOf('paused', { status: 'paused', disk_mib: 128, held_mib: 100 }));
      await sandboxes.insert(tx, rowOf('unknown', { status: 'paused' }));
      const going = { status: 'terminating', operation: 'cleaning', held_mib: 90 } as const;
      await sandboxes.insert(tx, rowOf('going', going));
      await sandboxes.insert(tx, rowOf('ended', { status: 'terminating', operation: 'removing' }));
      await sandboxes.insert(tx, rowOf('gone', { status: 'terminating', deleted_at_ms: 5 }));
    });
    const team_1 = {
      ...{ memory_mib: 128 + 100 + 512 + 90, cpu_millis: 100, disk_mib: 128 + 4 * 64 },
      ...{ active: 1, paused: 2, paused_memory_mib: 612 },
    };
    const own = { memory_mib: 2 ** 31, cpu_millis: 250, disk_mib: 1024 };
    const team_2 = { ...own, active: 1, paused: 0, paused_memory_mib: 0 };
    const node = sumOf(team_1, team_2);
    expect(node.memory_mib).toBe(830 + 2 ** 31);
    expect(await useBeside('new', 'team_1')).toEqual({ node, team: team_1, own: null });
    expect(await useBeside('new', 'team_3')).toEqual({ node, team: none, own: null });
    expect(await useBeside('b', 'team_2')).toMatchObject({ node: team_1, team: none, own: team_2 });
    expect(await quotas.teamUses(quotas.db, 10, 0)).toEqual([
      { team_id: 'team_2', ...team_2 },
      { team_id: 'team_1', ...team_1 },
    ]);
    expect(await quotas.teamUses(quotas.db, 1, 1)).toEqual([{ team_id: 'team_1', ...team_1 }]);
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

it('sums up what is taken by an index alone on SQLite: no row of another sandbox is read', async () => {
  const plans = await plansOf(async (database) => {
    const quotas = new QuotaStore(database);
    await quotas.nodeUse(database.db, { sandbox_id: 'sbx_1', team_id: 'team_1' });
    await quotas.teamUses(database.db, 100, 0);
  });
  const reads = new Set(plans.filter((plan) => /SCAN|SEARCH/.test(plan)));
  expect([...reads].sort()).toEqual([
    'SCAN sandboxes USING COVERING INDEX sandboxes_taken',
    'SEARCH sandboxes USING COVERING INDEX sandboxes_taken (team_id=?)',
    'SEARCH sandboxes USING INDEX sqlite_autoindex_sandboxes_1 (sandbox_id=?)',
  ]);
});
