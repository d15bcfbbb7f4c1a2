import { expect, it, onTestFinished } from 'vitest';
import { type Database, openDatabase } from '../../../src/manager/database/database.ts';
import { QuotaPolicies } from '../../../src/manager/quotas/quota-policies.ts';
import { QuotaStore } from '../../../src/manager/quotas/quota-store.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { describeOnStores } from '../../support/stores.ts';

const TEAM = 'team_1';
async function opened(url: string): Promise<Database> {
  const database = await openDatabase(url);
  onTestFinished(() => database.close());
  return database;
}

describeOnStores('the policies of a team', (fresh) => {
  it('are known within 5 s if another replica changes them, and at once if this one does', async () => {
    const database = await opened(await fresh());
    const store = new QuotaStore(database);
    const clock = new ManualClock();
    const [here, there] = [new QuotaPolicies(store, clock), new QuotaPolicies(store, clock)];
    const limit = async (policies: QuotaPolicies) =>
      (await policies.of(TEAM)).get('active_sandboxes')?.limit_value;
    expect([await limit(here), await limit(there)]).toEqual([undefined, undefined]);
    await store.set(TEAM, {
      dimension: 'active_sandboxes',
      limit_value: 3,
      interval_ms: null,
      burst_value: null,
    });
    here.forget(TEAM);
    expect([await limit(here), await limit(there)]).toEqual([3, undefined]);
    await clock.advance(5_000);
    expect(await limit(there)).toBe(3);
  });

  it('are read again if they changed while they were being read', async () => {
    const database = await opened(await fresh());
    const store = new QuotaStore(database);
    const policies = new QuotaPolicies(store, new ManualClock());
    const reading = policies.of(TEAM);
    policies.forget(TEAM);
    await reading;
    await store.set(TEAM, {
      dimension: 'active_sandboxes',
      limit_value: 3,
      interval_ms: null,
      burst_value: null,
    });
    expect((await policies.of(TEAM)).get('active_sandboxes')?.limit_value).toBe(3);
  });
});
