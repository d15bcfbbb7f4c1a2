import { expect, it } from 'vitest';
import type { DueRecord } from '../../../src/outbox/store.ts';
import { outcomeOf } from '../../support/manager/outbox.ts';
import { ENDPOINT, openBench } from '../../support/manager/outbox-bench.ts';
import { describeOnStores } from '../../support/stores.ts';

describeOnStores("outcomes in the manager's outbox", (fresh) => {
  it('keeps an outcome that the database refuses with less, and all others whole', async () => {
    const { deleted, owned, views } = await openBench(await fresh());
    for (let i = 1; i <= 9; i++) await deleted(`sb_${i}`);
    const records = await owned();
    const given = (await records.untried(0, 9)).records;
    const recorded = given.map((record, i) => {
      const outcome = { ...outcomeOf(record, { state: 'delivered' }), response_body: 'fine' };
      // One is refused by PostgreSQL for its body, the other by SQLite for its duration.
      const poison = { response_body: 'a\0b', duration_ms: Number.NaN };
      return records.record(i === 4 ? { ...outcome, ...poison } : outcome);
    });
    await Promise.all(recorded);
    expect(records.lost).toBe(0);
    for (const [i, { event_id }] of given.entries()) {
      const detail = await views.find('team_1', event_id);
      expect(detail?.state).toBe('delivered');
      const bodies = detail?.attempts.map(({ response_body }) => response_body);
      if (i === 4) expect(bodies).not.toContain('fine');
      else expect(bodies).toEqual(['fine']);
    }
  });

  it("are refused, and counted, under a fence that is no longer the endpoint's", async () => {
    const { database, deleted, owned, outcomes, views } = await openBench(await fresh());
    await deleted('sb_1');
    await owned();
    const row = await database.db.selectFrom('outbox').select(['id', 'event_id']).executeTakeFirstOrThrow();
    const { fence } = await database.db
      .selectFrom('outbox_endpoints')
      .select('fence')
      .executeTakeFirstOrThrow();
    const outcome = outcomeOf({ id: row.id, attempts: 0 } as DueRecord, { state: 'delivered' });
    expect(await outcomes.record({ endpoint: ENDPOINT, fence: fence - 1 }, outcome)).toBe(false);
    expect(outcomes.refused).toBe(1);
    expect(await views.find('team_1', row.event_id)).toMatchObject({ state: 'pending', attempts: [] });
    expect(await outcomes.record({ endpoint: ENDPOINT, fence }, outcome)).toBe(true);
    expect(await views.find('team_1', row.event_id)).toMatchObject({ state: 'delivered', attempt_count: 1 });
  });
});
