import { expect, it } from 'vitest';
import { IdempotencyStore } from '../../../src/manager/sandboxes/idempotency-store.ts';
import { storeWith } from '../../support/manager/sandbox-rows.ts';
import { describeOnStores } from '../../support/stores.ts';

describeOnStores('the store of idempotency keys', (fresh) => {
  it('says what became of a claim for as long as its key is kept', async () => {
    const { store, database } = await storeWith(await fresh());
    const keys = new IdempotencyStore(database.db);
    const key = { team_id: 'team_1', key: 'k', body_hash: 'h' };
    const lookUp = (claim = key, since_ms = 0) => store.write((tx) => keys.lookUp(tx, claim, since_ms));
    expect(await lookUp()).toEqual({ outcome: 'new' });
    await store.write((tx) => keys.reserve(tx, key, 'a', 5));
    expect(await lookUp()).toEqual({ outcome: 'under_way' });
    expect(await lookUp({ ...key, body_hash: 'other' })).toEqual({ outcome: 'conflict' });
    expect(await lookUp({ ...key, team_id: 'team_2' })).toEqual({ outcome: 'new' });
    await keys.purge(100, 100);
    expect(await lookUp()).toEqual({ outcome: 'under_way' });
    await store.write((tx) => keys.storeAnswer(tx, 'a', 201, { n: 1 }));
    expect(await lookUp()).toMatchObject({ outcome: 'answered', status_code: 201, answer: { n: 1 } });
    expect(await lookUp(key, 6)).toEqual({ outcome: 'new' });
    await store.write((tx) => keys.reserve(tx, key, 'b', 7));
    await store.write((tx) => keys.storeAnswer(tx, 'b', 201, {}));
    await keys.purge(100, 100);
    expect(await lookUp()).toEqual({ outcome: 'new' });
  });
});
