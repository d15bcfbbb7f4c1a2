import { expect, it } from 'vitest';
import { IdempotencyStore } from '../../../src/manager/sandboxes/idempotency-store.ts';
import type { ManagedSandboxRow } from '../../../src/manager/sandboxes/sandbox-store.ts';
import { TRANSITIONS, type Verb } from '../../../src/manager/sandboxes/transitions.ts';
import { rowOf, storeWith } from '../../support/manager/sandbox-rows.ts';
import { describeOnStores } from '../../support/stores.ts';

const LEASE = { owner: 'replica_1', until_ms: 1_000 };

const one = (sandbox_id: string, team_id: string | null = 'team_1') => ({ sandbox_id, team_id, now_ms: 5 });

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
        expect(foreign).toEqual({ refused: 'not_found', status: null });
        const outcome = await store.write((tx) => store.beginTransition(tx, verb, one(id), LEASE));
        const { from, operation, during = status } = TRANSITIONS[verb];
        if (!from.includes(status)) expect(outcome).toEqual({ refused: 'status', status });
        else expect(outcome).toMatchObject({ status: during, operation, operation_owner: 'replica_1' });
      }
    }
  });

  it('ends an operation only for its owner, or for one that took it over', async () => {
    const { store, housekeeping } = await storeWith(await fresh(), rowOf('a'));
    const row = (await store.write((tx) =>
      store.beginTransition(tx, 'pause', one('a'), LEASE),
    )) as ManagedSandboxRow;
    const end = (owner: string) =>
      store.write((tx) => store.endOperation(tx, 'a', 'pausing', owner, { status: 'paused' }));
    expect(await end('replica_2')).toBeNull();
    await store.renew(['a'], { owner: 'replica_1', until_ms: 2_000 });
    // It was renewed since it was read.
    expect(await store.takeOver(row, { owner: 'replica_2', until_ms: 3_000 })).toBeNull();
    const [seen] = await housekeeping.withOperation();
    const takers = await Promise.all(
      ['replica_2', 'replica_3'].map((owner) =>
        store.takeOver(seen as ManagedSandboxRow, { owner, until_ms: 3_000 }),
      ),
    );
    const [taker] = takers.filter((taken) => taken !== null);
    expect(takers.filter((taken) => taken !== null)).toHaveLength(1);
    expect(await end('replica_1')).toBeNull();
    expect(await end(taker?.operation_owner as string)).toMatchObject({ status: 'paused', operation: null });
    expect(await housekeeping.withOperation()).toEqual([]);
  });

  it('drops a failed claim together with its key', async () => {
    const claiming = { operation: 'claiming', operation_owner: 'replica_1', operation_until_ms: 9 } as const;
    const { store, database } = await storeWith(await fresh(), rowOf('a', claiming), rowOf('b'));
    const keys = new IdempotencyStore(database.db);
    const key = { team_id: 'team_1', key: 'k', body_hash: 'h' };
    await store.write((tx) => keys.reserve(tx, key, 'a', 5));
    await store.write((tx) => store.drop(tx, 'a', 'replica_2'));
    expect(await store.find(store.db, 'a', null)).not.toBeNull();
    await store.write((tx) => store.drop(tx, 'b', 'replica_1'));
    expect(await store.find(store.db, 'b', null)).not.toBeNull();
    await store.write((tx) => store.drop(tx, 'a', 'replica_1'));
    expect(await store.find(store.db, 'a', null)).toBeNull();
    expect(await store.write((tx) => keys.lookUp(tx, key, 0))).toEqual({ outcome: 'new' });
  });
});
