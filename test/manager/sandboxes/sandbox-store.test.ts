import { expect, it } from 'vitest';
import type { OperationInProgress } from '../../../src/manager/sandboxes/housekeeping-store.ts';
import { IdempotencyStore } from '../../../src/manager/sandboxes/idempotency-store.ts';
import type { ManagedSandboxRow, NumberedOperation } from '../../../src/manager/sandboxes/sandbox-store.ts';
import { TRANSITIONS, type Verb } from '../../../src/manager/sandboxes/transitions.ts';
import { momentAt } from '../../support/manager/manual-time.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { operationsIn, rowOf, storeWith } from '../../support/manager/sandbox-rows.ts';
import { describeOnStores } from '../../support/stores.ts';

const leaseOf = (owner: string, until_ms = 1_000) => ({ owner, until: momentAt(until_ms).now });
const LEASE = leaseOf('replica_1');
const AT = momentAt(5);

const ALL = { limit: 10, offset: 0 };

const one = (sandbox_id: string, team_id: string | null = 'team_1') => ({ sandbox_id, team_id, at: AT });

describeOnStores('the store of sandboxes', (fresh) => {
  it('lets one of many transitions begin and tells the others why not', async () => {
    const { store } = await storeWith(await fresh(), rowOf('a'));
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        store.write((tx) =>
          store.beginTransition(tx, 'pause', one('a'), { ...LEASE, owner: `replica_${i}` }),
        ),
      ),
    );
    const begun = outcomes.filter((outcome) => !('refused' in outcome));
    expect(begun).toHaveLength(1);
    const refused = outcomes.filter((outcome) => 'refused' in outcome);
    expect(refused).toHaveLength(9);
    for (const each of refused) expect(each).toEqual({ refused: 'busy', status: 'running' });
  });

  it('begins a transition only from its statuses and only for its team', async () => {
    const { store } = await storeWith(await fresh());
    const statuses = ['starting', 'running', 'paused', 'terminating', 'failed'] as const;
    for (const verb of Object.keys(TRANSITIONS) as Verb[]) {
      for (const status of statuses) {
        const id = `${verb}-${status}`;
        await store.write((tx) => store.insert(tx, rowOf(id, { status })));
        const foreign = await store.write((tx) => store.beginTransition(tx, verb, one(id, 'team_2'), LEASE));
        expect(foreign).toEqual({ refused: 'not_found', status: null, deleted_at_ms: null });
        const outcome = await store.write((tx) => store.beginTransition(tx, verb, one(id), LEASE));
        const { from, operation, during = status } = TRANSITIONS[verb];
        if (!from.includes(status)) expect(outcome).toEqual({ refused: 'status', status });
        else expect(outcome).toMatchObject({ status: during, operation, operation_owner: 'replica_1' });
      }
    }
  });

  it('ends an operation only for whoever has its number: its owner, or one that took it over', async () => {
    const { store, housekeeping } = await storeWith(await fresh(), rowOf('a'));
    const row = (await store.write((tx) =>
      store.beginTransition(tx, 'pause', one('a'), LEASE),
    )) as ManagedSandboxRow;
    const end = (held: NumberedOperation) =>
      store.write((tx) => store.endOperation(tx, held, { status: 'paused' }));
    expect(await end({ ...row, operation_fence: row.operation_fence + 1 })).toBeNull();
    const { operation, operation_fence } = row;
    expect(await store.renew(['a'], leaseOf('replica_1', 2_000))).toEqual([
      { sandbox_id: 'a', operation, operation_fence },
    ]);
    // It was renewed since it was read.
    expect(await store.takeOver(row, leaseOf('replica_2', 3_000), AT)).toBeNull();
    const [seen] = await operationsIn(housekeeping, AT);
    const takers = await Promise.all(
      ['replica_2', 'replica_3'].map((owner) =>
        store.takeOver(seen as OperationInProgress, leaseOf(owner, 3_000), AT),
      ),
    );
    const [taker] = takers.filter((taken) => taken !== null);
    expect(takers.filter((taken) => taken !== null)).toHaveLength(1);
    expect(await store.renew(['a'], leaseOf('replica_1', 2_000))).toEqual([]);
    expect(await store.write((tx) => store.isHeld(tx, row))).toBe(false);
    expect(await end(row)).toBeNull();
    expect(taker?.operation_fence).toBeGreaterThan(operation_fence);
    expect(await end(taker as ManagedSandboxRow)).toMatchObject({ status: 'paused', operation: null });
    expect(await operationsIn(housekeeping, AT)).toEqual([]);
  });

  it('drops a failed claim together with its key', async () => {
    const claiming = { operation: 'claiming', operation_owner: 'replica_1', operation_until_ms: 9 } as const;
    const { store, database } = await storeWith(await fresh(), rowOf('a', claiming), rowOf('b'));
    const keys = new IdempotencyStore(database.db);
    const key = { team_id: 'team_1', key: 'k', body_hash: 'h' };
    await store.write((tx) => keys.reserve(tx, key, 'a', 5));
    const held = { sandbox_id: 'a', operation: 'claiming', operation_fence: 0 } as const;
    expect(await store.write((tx) => store.drop(tx, { ...held, operation_fence: 1 }))).toBe(false);
    expect(await store.find(store.db, 'a', null)).not.toBeNull();
    expect(await store.write((tx) => store.drop(tx, { ...held, sandbox_id: 'b' }))).toBe(false);
    expect(await store.find(store.db, 'b', null)).not.toBeNull();
    expect(await store.write((tx) => store.drop(tx, held))).toBe(true);
    expect(await store.find(store.db, 'a', null)).toBeNull();
    expect(await store.write((tx) => keys.lookUp(tx, key, 0))).toEqual({ outcome: 'new' });
  });
});

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
    const held = { sandbox_id: 'ending', operation: 'cleaning', operation_fence: 0 } as const;
    await store.write((tx) => store.endDeletion(tx, { ...held, operation_fence: 1 }, { deleted_at_ms: 6 }));
    expect(await pairs()).toHaveLength(2);
    await store.write((tx) => store.endDeletion(tx, held, { deleted_at_ms: 6 }));
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
