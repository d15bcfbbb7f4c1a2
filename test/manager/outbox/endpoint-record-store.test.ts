import { expect, it } from 'vitest';
import type { OutcomeStore } from '../../../src/manager/outbox/outcome-store.ts';
import { outcomeOf } from '../../support/manager/outbox.ts';
import { ENDPOINT, openBench } from '../../support/manager/outbox-bench.ts';
import { describeOnStores } from '../../support/stores.ts';

describeOnStores('the records of an endpoint', (fresh) => {
  it('gives out what was never tried in order and once, also what becomes visible late', async () => {
    const { database, deleted, owned } = await openBench(await fresh());
    for (const id of ['sb_1', 'sb_2', 'sb_3']) await deleted(id);
    const records = await owned();
    const first = await records.untried(0, 2);
    expect(first.more).toBe(true);
    expect(first.records.map(({ id }) => id)).toEqual([1, 2]);
    const second = await records.untried(2, 2);
    expect(second).toMatchObject({ more: false, records: [{ id: 3 }] });
    expect((await records.untried(3, 2)).records).toEqual([]);
    // As of a transaction that began before the others and is committed after them.
    await database.db.updateTable('outbox').set({ endpoint: 'elsewhere' }).where('id', '=', 1).execute();
    await deleted('sb_4');
    const late = await records.untried(3, 2);
    expect(late.records.map(({ id }) => id)).toEqual([4]);
    await database.db.updateTable('outbox').set({ endpoint: ENDPOINT }).where('id', '=', 1).execute();
    expect((await records.untried(4, 2)).records).toEqual([]);
  });

  it('does not give out what was settled while it was being read', async () => {
    const { deleted, owned, database, now, records: recordsOf } = await openBench(await fresh());
    await deleted('sb_1');
    await owned();
    const row = await database.db.selectFrom('outbox_endpoints').selectAll().executeTakeFirstOrThrow();
    // Settles at once, so that the reads that are under way show what was before.
    const at_once = { record: async () => true } as unknown as OutcomeStore;
    const records = recordsOf({ endpoint: ENDPOINT, fence: row.fence }, at_once);
    const [record] = (await records.untried(0, 1)).records;
    const reading = records.untried(1, 10);
    if (record)
      await records.record(outcomeOf(record, { state: 'pending', due_ms: now.wallMs(), probe_ms: 0 }));
    expect((await reading).records).toEqual([]);
  });

  it('loads a record as long as it is pending', async () => {
    const { deleted, owned, now, clock } = await openBench(await fresh());
    await deleted('sb_1');
    const records = await owned();
    const [record] = (await records.untried(0, 1)).records;
    if (!record) throw new Error('nothing to send');
    const due_ms = now.wallMs() + 500;
    await records.record(outcomeOf(record, { state: 'pending', due_ms, probe_ms: due_ms }, 503));
    await clock.advance(500);
    const [again] = (await records.due(1)).records;
    if (!again) throw new Error('nothing is due');
    expect(await records.load(again)).toMatchObject({ url: 'http://consumer.invalid/hook?key=1' });
    await records.record(outcomeOf(again, { state: 'delivered' }));
    expect(await records.load(again)).toBeNull();
    expect(records.lost).toBe(1);
  });

  it('records one attempt after another at a record until it is released', async () => {
    const { deleted, owned, now, database } = await openBench(await fresh());
    await deleted('sb_1');
    const records = await owned();
    const [record] = (await records.untried(0, 1)).records;
    if (!record) throw new Error('nothing to send');
    const retry = { state: 'pending', due_ms: now.wallMs(), probe_ms: 0 } as const;
    const attempts = async () =>
      (await database.db.selectFrom('outbox').select('attempts').executeTakeFirstOrThrow()).attempts;
    for (const attempt of [1, 2]) await records.record({ ...outcomeOf(record, retry, 503), attempt });
    expect(await attempts()).toBe(2);
    records.release(record.id);
    await records.record({ ...outcomeOf(record, retry, 503), attempt: 3 });
    expect(await attempts()).toBe(2);
    const [again] = (await records.due(1)).records;
    expect(again).toMatchObject({ event_id: record.event_id, attempts: 2 });
    expect(again?.id).not.toBe(record.id);
  });

  it('holds neither headers nor bodies: they are read for each attempt', async () => {
    const { deleted, owned } = await openBench(await fresh());
    await deleted('sb_1');
    const records = await owned();
    const [record] = (await records.untried(0, 1)).records;
    if (!record) throw new Error('nothing to send');
    expect(Object.keys(record)).not.toContain('headers');
    expect(record).toMatchObject({ body_bytes: 0 });
    expect(await records.load(record)).toMatchObject({
      ...record,
      unusable: null,
      headers: { 'ce-id': record.event_id },
      body: expect.stringContaining(record.event_id),
    });
  });

  it('loads a record that cannot be sent as it is stored, with the reason', async () => {
    const { deleted, owned, database } = await openBench(await fresh());
    await deleted('sb_1');
    await database.db.updateTable('outbox').set({ headers: '{' }).execute();
    const records = await owned();
    const [record] = (await records.untried(0, 1)).records;
    const loaded = record && (await records.load(record));
    expect(loaded).toMatchObject({ headers: {}, unusable: expect.stringMatching(/JSON/) });
    expect(records.lost).toBe(0);
  });
});
