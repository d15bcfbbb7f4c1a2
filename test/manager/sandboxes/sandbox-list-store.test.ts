import { expect, it } from 'vitest';
import { startManager } from '../../support/manager/running-manager.ts';
import { rowOf, storeWith } from '../../support/manager/sandbox-rows.ts';
import { describeOnStores } from '../../support/stores.ts';

const ALL = { limit: 10, offset: 0 };

describeOnStores('a list of sandboxes', (fresh) => {
  it('holds those that have every pair of metadata', async () => {
    const metadataOf = (pairs: Record<string, string>) => ({ metadata: JSON.stringify(pairs) });
    const { store } = await storeWith(
      await fresh(),
      rowOf('web', metadataOf({ 'app/tier': 'web', n: '1' })),
      rowOf('api', metadataOf({ 'app/tier': 'api', n: '1' })),
      rowOf('odd', metadataOf({ 'a.b-c_d': 'x:y=ü "quoted" %', '5': '', '-1': 'minus', $: 'x' })),
      rowOf('none', metadataOf({})),
      rowOf('old'),
      rowOf('foreign', { ...metadataOf({ n: '1' }), team_id: 'team_2' }),
      rowOf('gone', { ...metadataOf({ n: '1' }), deleted_at_ms: 5 }),
    );
    const idsOf = async (...metadata: string[]) => {
      const { rows, count } = await store.list('team_1', { ...ALL, metadata });
      expect(count).toBe(rows.length);
      return rows.map(({ sandbox_id }) => sandbox_id).sort();
    };
    expect(await idsOf('n:1')).toEqual(['api', 'web']);
    expect(await idsOf('n:1', 'app/tier:web')).toEqual(['web']);
    expect(await idsOf('n:1', 'app/tier:none')).toEqual([]);
    expect(await idsOf('a.b-c_d:x:y=ü "quoted" %')).toEqual(['odd']);
    expect(await idsOf('5:')).toEqual(['odd']);
    expect(await idsOf('-1:minus')).toEqual(['odd']);
    expect(await idsOf('a.b:')).toEqual([]);
    expect(await idsOf()).toEqual(['api', 'none', 'odd', 'old', 'web']);
  });

  it('by pairs combines with every other filter, and is counted beyond its page', async () => {
    const metadata = JSON.stringify({ env: 'ci', n: '1' });
    const rows = Array.from({ length: 12 }, (_, i) => {
      const status = i % 2 === 0 ? ('paused' as const) : ('running' as const);
      return rowOf(`sbx_${i}`, { status, created_at_ms: i, template_id: i < 6 ? 'a' : 'b', metadata });
    });
    const { store } = await storeWith(await fresh(), ...rows);
    const pageOf = async (filter: object) => {
      const page = await store.list('team_1', { ...ALL, metadata: ['env:ci', 'n:1'], ...filter });
      return [page.count, ...page.rows.map(({ sandbox_id }) => sandbox_id)];
    };
    expect(await pageOf({ limit: 2 })).toEqual([12, 'sbx_11', 'sbx_10']);
    expect(await pageOf({ limit: 2, offset: 11 })).toEqual([12, 'sbx_0']);
    expect(await pageOf({ paused: true, template_id: 'b' })).toEqual([3, 'sbx_10', 'sbx_8', 'sbx_6']);
    expect(await pageOf({ status: 'running', template_id: 'a', limit: 1 })).toEqual([3, 'sbx_5']);
    expect(await pageOf({ status: 'failed' })).toEqual([0]);
  });

  it('no longer holds a sandbox that is deleted, of which nothing is left once its row is purged', async () => {
    const metadata = JSON.stringify({ env: 'ci' });
    const { store, housekeeping, database } = await storeWith(
      await fresh(),
      rowOf('ending', { metadata, status: 'terminating', operation: 'cleaning', operation_owner: 'me' }),
      rowOf('purged', { metadata, deleted_at_ms: 5 }),
    );
    const pairs = () => database.db.selectFrom('sandbox_metadata').select('sandbox_id').execute();
    expect((await store.list('team_1', { ...ALL, metadata: ['env:ci'] })).count).toBe(1);
    await store.write((tx) => store.endDeletion(tx, 'ending', 'another', { deleted_at_ms: 6 }));
    expect(await pairs()).toHaveLength(2);
    await store.write((tx) => store.endDeletion(tx, 'ending', 'me', { deleted_at_ms: 6 }));
    expect(await pairs()).toEqual([{ sandbox_id: 'purged' }]);
    expect((await store.findKept(store.db, 'ending', null))?.metadata).toBe(metadata);
    await housekeeping.purge(10, 100);
    expect(await pairs()).toEqual([]);
  });

  it('takes pairs from the query, repeated, and refuses what is no pair', async () => {
    const { client } = await startManager(await fresh());
    const team = await client('team_1', 'sandboxes:write');
    const id = await team.claim({ metadata: { tier: 'web front', n: '1' } });
    await team.claim({ metadata: { n: '1' } });
    const countOf = async (query: string) => (await team.get(`/api/v1/sandboxes?${query}`)).data.count;
    expect(await countOf('metadata=n:1')).toBe(2);
    expect(await countOf('metadata=n:1&metadata=tier:web%20front&status=running')).toBe(1);
    const { data } = await team.get('/api/v1/sandboxes?metadata=tier:web+front');
    expect(data.sandboxes.map((each: { id: string }) => each.id)).toEqual([id]);
    for (const bad of ['n', '', ':1', 'a%20b:1', `n:${'x'.repeat(257)}`, 'n:%00', 'a"b:1']) {
      const { status, error } = await team.get(`/api/v1/sandboxes?metadata=n:1&metadata=${bad}`);
      expect([bad, status, error?.details?.field]).toEqual([bad, 400, 'metadata']);
    }
  });
});
