import { expect, it } from 'vitest';
import { endpointOf } from '../../../src/manager/outbox/endpoint-key.ts';
import { noticeOf, outcomeOf } from '../../support/manager/outbox.ts';
import { ENDPOINT, openBench } from '../../support/manager/outbox-bench.ts';
import { describeOnStores } from '../../support/stores.ts';

const HOUR_MS = 3_600_000;

describeOnStores("a team's view of its records", (fresh) => {
  it('shows a team its own records alone, newest first, in pages', async () => {
    const { database, outbox, views, deleted, clock } = await openBench(await fresh());
    for (let i = 1; i <= 5; i++) await deleted(`sb_${i}`);
    const other = noticeOf(clock.wallMs(), { team_id: 'team_2', sandbox_id: 'sb_other' });
    await database.db.transaction().execute((tx) => outbox.insertDeleted(tx, other));
    const first = await views.list('team_1', { limit: 3 });
    expect(first.deliveries.map(({ sandbox_id }) => sandbox_id)).toEqual(['sb_5', 'sb_4', 'sb_3']);
    const rest = await views.list('team_1', { limit: 3, before_id: Number(first.next_cursor) });
    expect(rest.deliveries.map(({ sandbox_id }) => sandbox_id)).toEqual(['sb_2', 'sb_1']);
    expect(rest.next_cursor).toBeNull();
    expect((await views.list('team_1', { limit: 9, state: 'failed' })).deliveries).toEqual([]);
    expect((await views.list('team_1', { limit: 9, event_type: 'agent.event' })).deliveries).toEqual([]);
    const [theirs] = (await views.list('team_2', { limit: 9 })).deliveries;
    expect(await views.find('team_1', theirs?.event_id ?? '')).toBeNull();
    expect(await views.replay('team_1', theirs?.event_id ?? '')).toEqual([]);
    expect(await views.counts()).toEqual({ pending: 6, oldest_at_ms: clock.wallMs() });
  });

  it('narrows them by sandbox and by endpoint', async () => {
    const { database, outbox, views, deleted, clock } = await openBench(await fresh());
    await deleted('sb_1');
    await deleted('sb_2');
    const elsewhere = noticeOf(clock.wallMs(), {
      sandbox_id: 'sb_3',
      webhook_url: 'http://elsewhere.example:8080/hook?token=1',
    });
    await database.db.transaction().execute((tx) => outbox.insertDeleted(tx, elsewhere));
    const ids = async (filter: { sandbox_id?: string; endpoint?: string }) =>
      (await views.list('team_1', { limit: 9, ...filter })).deliveries.map(({ sandbox_id }) => sandbox_id);
    expect(await ids({})).toEqual(['sb_3', 'sb_2', 'sb_1']);
    expect(await ids({ sandbox_id: 'sb_2' })).toEqual(['sb_2']);
    expect(await ids({ endpoint: ENDPOINT })).toEqual(['sb_2', 'sb_1']);
    expect(await ids({ endpoint: endpointOf('http://elsewhere.example:8080/hook') })).toEqual(['sb_3']);
    expect(await ids({ sandbox_id: 'sb_3', endpoint: ENDPOINT })).toEqual([]);
  });

  it('makes final records pending again with a new window, and leaves pending ones as they are', async () => {
    const { database, deleted, owned, views, clock, now } = await openBench(await fresh());
    for (const id of ['sb_1', 'sb_2', 'sb_3']) await deleted(id);
    const records = await owned();
    const given = (await records.untried(0, 2)).records;
    for (const record of given) await records.record(outcomeOf(record, { state: 'failed' }, 400));
    const [first, second] = given.map(({ event_id }) => event_id) as [string, string];
    const before = await database.db.selectFrom('outbox').selectAll().where('event_id', '=', first).execute();
    await clock.advance(HOUR_MS);
    expect(await views.replay('team_1', first)).toEqual([ENDPOINT]);
    expect(await views.replay('team_1', first)).toEqual([]);
    const [row] = await database.db.selectFrom('outbox').selectAll().where('event_id', '=', first).execute();
    expect(row).toEqual({
      ...before[0],
      state: 'pending',
      due_ms: now.wallMs(),
      probe_ms: now.wallMs(),
      deadline_ms: now.wallMs() + 24 * HOUR_MS,
      failures: 0,
      finished_at_ms: null,
    });
    expect((await records.due(10)).records).toMatchObject([{ event_id: first, attempts: 1 }]);
    expect(await views.replayAll('team_2', 'failed')).toMatchObject({ replayed: 0 });
    expect(await views.replayAll('team_1', 'failed')).toEqual({
      replayed: 1,
      endpoints: new Set([ENDPOINT]),
    });
    expect((await records.due(10)).records.map(({ event_id }) => event_id).sort()).toEqual(
      [first, second].sort(),
    );
  });
});
