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
