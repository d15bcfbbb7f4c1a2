import { expect } from 'vitest';
import { FINAL_STATES } from '../../../../src/contract/words.ts';
import type { DueRecord } from '../../../../src/outbox/store.ts';
import {
  appended,
  appendedOne,
  type Case,
  idsOf,
  outcomeOf,
  requestOf,
  retryAt,
} from './outbox-under-test.ts';

const HOUR_MS = 3_600_000;

/** Replay, expiry and retention. Contract section 3, Window and Retention, and section 4, Deliveries. */
export const FINISHED_CASES: Case[] = [
  ...FINAL_STATES.map(
    (state): Case => ({
      name: `a replay makes a record that is "${state}" due at once: the same bytes, a new window, attempts go on`,
      takes_time: true,
      async run(outbox) {
        const { store, window_ms, retained_ms } = outbox;
        const record = await appendedOne(outbox);
        const sent = await requestOf(outbox, record);
        await store.record(outcomeOf(record, { state }, { attempt: 3 }));
        await outbox.advance(Math.floor(retained_ms[state] / 2));
        await outbox.replay(record.event_id);
        const [again] = (await store.due(10)).records as [DueRecord];
        expect(again).toMatchObject({
          event_id: record.event_id,
          attempts: 3,
          failures: 0,
          deadline_ms: store.now() + window_ms,
          created_at_ms: record.created_at_ms,
        });
        expect(again.probe_ms).toBeLessThanOrEqual(store.now());
        expect(await requestOf(outbox, again)).toEqual(sent);
        const detail = await outbox.find(record.event_id);
        expect(detail).toMatchObject({ state: 'pending', finished_at: null, attempt_count: 3 });
        expect((await outbox.counts()).pending).toBe(1);
        await store.record(outcomeOf(again, { state: 'delivered' }));
        const attempts = (await outbox.find(record.event_id))?.attempts;
        expect(attempts?.map(({ attempt }) => attempt)).toEqual([3, 4]);
      },
    }),
  ),
  {
    name: 'a discarded record is gone with its attempts, also after a restart; a pending one and no other stays',
    async run(outbox) {
      const { store } = outbox;
      const records = (await appended(outbox, 6)) as [DueRecord, DueRecord, ...DueRecord[]];
      const [failed, pending] = records;
      for (const [i, state] of (
        ['failed', null, 'failed', 'expired', 'delivered', 'failed'] as const
      ).entries()) {
        if (state) await store.record(outcomeOf(records[i] as DueRecord, { state }));
      }
      expect(await outbox.discard(failed.event_id)).toBe(true);
      expect(await outbox.discard(failed.event_id)).toBe(false);
      expect(await outbox.discard(pending.event_id)).toBe(false);
      expect(await outbox.discard('evt_019a2b3c-4d5e-7f60-8123-000000000001')).toBe(false);
      expect(await outbox.discardAll('failed')).toBe(2);
      expect(await outbox.discardAll('failed')).toBe(0);
      const again = await outbox.restart();
      const left = (await again.list({ limit: 10 })).deliveries;
      expect(left.map(({ state }) => state)).toEqual(['delivered', 'expired', 'pending']);
      expect(await again.find(failed.event_id)).toBeNull();
      expect((await again.counts()).pending).toBe(1);
    },
  },
  {
    name: 'a replay leaves a pending record as it is, and knows no other',
    async run(outbox) {
      const { store } = outbox;
      const [untried, retried] = (await appended(outbox, 2)) as [DueRecord, DueRecord];
      const due_ms = store.now() + HOUR_MS;
      await store.record(outcomeOf(retried, retryAt(due_ms)));
      for (const { event_id } of [untried, retried]) await outbox.replay(event_id);
      await outbox.replay('evt_019a2b3c-4d5e-7f60-8123-000000000001');
      expect(await store.due(10)).toEqual({ records: [], next_due_ms: due_ms });
      expect((await outbox.counts()).pending).toBe(2);
      const again = await outbox.restart();
      expect(idsOf((await again.store.untried(0, 10)).records)).toEqual([untried.event_id]);
    },
  },
  {
    name: 'a replay of a state replays every record in it and no other, and tells their number',
    async run(outbox) {
      const { store } = outbox;
      const records = await appended(outbox, 7);
      const states = ['failed', 'expired', 'failed', 'delivered', 'failed', 'delivered'] as const;
      for (const [i, state] of states.entries()) {
        await store.record(outcomeOf(records[i] as DueRecord, { state }));
      }
      expect(await outbox.replayAll('failed')).toBe(3);
      const due = idsOf((await store.due(10)).records);
      expect(due.toSorted()).toEqual(idsOf([records[0], records[2], records[4]] as DueRecord[]).toSorted());
      expect(await outbox.replayAll('failed')).toBe(0);
      expect(await outbox.replayAll('delivered')).toBe(2);
      expect((await outbox.counts()).pending).toBe(6);
      expect((await outbox.list({ state: 'expired', limit: 10 })).deliveries).toHaveLength(1);
    },
  },
  {
    name: 'a record whose window is over waits for its last attempt, however long, and then is expired',
    takes_time: true,
    async run(outbox) {
      const { store, window_ms } = outbox;
      const [untried, tried] = (await appended(outbox, 2)) as [DueRecord, DueRecord];
      await store.record(outcomeOf(tried, retryAt(tried.deadline_ms)));
      await outbox.advance(window_ms + 30 * 24 * HOUR_MS);
      await outbox.prune();
      expect((await outbox.counts()).pending).toBe(2);
      const again = await outbox.restart();
      const [never_tried] = (await again.store.untried(0, 10)).records as [DueRecord];
      expect(never_tried.event_id).toBe(untried.event_id);
      expect(never_tried.deadline_ms).toBeLessThanOrEqual(again.store.now());
      const [overdue] = (await again.store.overdue(10)).records as [DueRecord];
      expect(overdue.event_id).toBe(tried.event_id);
      for (const record of [never_tried, overdue]) {
        await again.store.record(outcomeOf(record, { state: 'expired' }));
      }
      const { deliveries } = await again.list({ state: 'expired', limit: 10 });
      expect(idsOf(deliveries)).toEqual(idsOf([tried, untried]));
      expect((await again.counts()).pending).toBe(0);
    },
  },
  ...FINAL_STATES.map(
    (state): Case => ({
      name: `a record that is "${state}" is kept for its time and then removed, with its attempts`,
      takes_time: true,
      async run(outbox) {
        const { store, retained_ms } = outbox;
        const [ended, pending] = (await appended(outbox, 2)) as [DueRecord, DueRecord];
        await outbox.advance(HOUR_MS);
        await store.record(outcomeOf(ended, { state }));
        await outbox.advance(retained_ms[state] - 1);
        await outbox.prune();
        expect((await outbox.find(ended.event_id))?.attempts).toHaveLength(1);
        await outbox.advance(1);
        await outbox.prune();
        expect(await outbox.find(ended.event_id)).toBeNull();
        expect(idsOf((await outbox.list({ limit: 10 })).deliveries)).toEqual([pending.event_id]);
        expect((await outbox.counts()).pending).toBe(1);
      },
    }),
  ),
  {
    name: 'a replayed record is not removed while it is pending, and its retention begins anew when it ends',
    takes_time: true,
    async run(outbox) {
      const { store, retained_ms } = outbox;
      const record = await appendedOne(outbox);
      await store.record(outcomeOf(record, { state: 'failed' }));
      await outbox.advance(retained_ms.failed - 1);
      await outbox.replay(record.event_id);
      await outbox.advance(retained_ms.failed);
      await outbox.prune();
      const [again] = (await store.due(10)).records as [DueRecord];
      await store.record(outcomeOf(again, { state: 'failed' }));
      await outbox.advance(retained_ms.failed - 1);
      await outbox.prune();
      expect(await outbox.find(record.event_id)).toMatchObject({ state: 'failed', attempt_count: 2 });
    },
  },
];
