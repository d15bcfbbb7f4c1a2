import { expect } from 'vitest';
import type { AttemptOutcome, DueRecord } from '../../../../src/outbox/store.ts';
import {
  appended,
  appendedOne,
  type Case,
  idsOf,
  outcomeOf,
  requestOf,
  retryAt,
} from './outbox-under-test.ts';

/** What both APIs show. Contract section 4, Deliveries. */
export const VIEW_CASES: Case[] = [
  {
    name: 'a list is newest first; its pages have every record once, and the last one no cursor',
    async run({ append, list }) {
      const event_ids = await append(5);
      const seen: string[] = [];
      const sizes: number[] = [];
      for (let before_id: number | undefined; ; ) {
        const { deliveries, next_cursor } = await list({ limit: 2, before_id });
        seen.push(...idsOf(deliveries));
        sizes.push(deliveries.length);
        if (next_cursor === null) break;
        expect(next_cursor).toMatch(/^[1-9]\d*$/);
        before_id = Number(next_cursor);
      }
      expect(seen).toEqual(event_ids.toReversed());
      expect(sizes).toEqual([2, 2, 1]);
      expect((await list({ limit: 5 })).next_cursor).toBeNull();
    },
  },
  {
    name: 'a page is not moved by records that are committed after it',
    async run({ append, list }) {
      const event_ids = await append(4);
      const { next_cursor } = await list({ limit: 2 });
      await append(3);
      const { deliveries } = await list({ limit: 2, before_id: Number(next_cursor) });
      expect(idsOf(deliveries)).toEqual([event_ids[1], event_ids[0]]);
    },
  },
  {
    name: 'a list of a state, or of an event type, has those records alone',
    async run(outbox) {
      const { store, list, event_type } = outbox;
      const [a, b, c] = (await appended(outbox, 3)) as [DueRecord, DueRecord, DueRecord];
      await store.record(outcomeOf(b, { state: 'failed' }));
      const of = async (filter: Parameters<typeof list>[0]) => idsOf((await list(filter)).deliveries);
      expect(await of({ state: 'failed', limit: 10 })).toEqual([b.event_id]);
      expect(await of({ state: 'pending', limit: 10 })).toEqual(idsOf([c, a]));
      for (const state of ['delivered', 'expired', 'foreign'] as const) {
        expect(await of({ state, limit: 10 })).toEqual([]);
      }
      expect(await of({ event_type, limit: 10 })).toEqual(idsOf([c, b, a]));
      expect(await of({ event_type: 'process.exited', limit: 10 })).toEqual([]);
      expect(await of({ event_type, state: 'pending', limit: 1 })).toEqual([c.event_id]);
    },
  },
  {
    name: 'a list says of each record when it is attempted next, how often it was, and what came of it',
    async run(outbox) {
      const { store, event_type } = outbox;
      const [retried, untried] = (await appended(outbox, 2)) as [DueRecord, DueRecord];
      const refused: Partial<AttemptOutcome> = { status: null, error: 'connect', error_detail: 'refused' };
      await store.record(outcomeOf(retried, retryAt(store.now() + 60_000), refused));
      const { deliveries } = await outbox.list({ limit: 10 });
      const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      const common = { event_type, state: 'pending', created_at: time, finished_at: null };
      expect(deliveries).toMatchObject([
        {
          ...common,
          event_id: untried.event_id,
          next_attempt_at: null,
          attempt_count: 0,
          last_status: null,
          last_error: null,
          last_error_detail: null,
        },
        {
          ...common,
          event_id: retried.event_id,
          next_attempt_at: time,
          attempt_count: 1,
          last_status: null,
          last_error: 'connect',
          last_error_detail: 'refused',
        },
      ]);
    },
  },
  {
    name: 'a record is shown in detail with the exact request that is sent, and as in the list',
    async run(outbox) {
      const record = await appendedOne(outbox);
      const detail = await outbox.find(record.event_id);
      const { attempts, body, headers, ...view } = detail ?? {};
      expect({ headers, body }).toEqual(await requestOf(outbox, record));
      expect(attempts).toEqual([]);
      expect((await outbox.list({ limit: 1 })).deliveries).toEqual([view]);
    },
  },
  {
    name: 'the pending records are counted, and when the oldest of them was committed',
    takes_time: true,
    async run(outbox) {
      const { store } = outbox;
      const first = await appendedOne(outbox);
      await outbox.advance(5_000);
      const second = await appendedOne(outbox);
      expect(await outbox.counts()).toEqual({ pending: 2, oldest_at_ms: first.created_at_ms });
      await store.record(outcomeOf(first, { state: 'delivered' }));
      expect(await outbox.counts()).toEqual({ pending: 1, oldest_at_ms: second.created_at_ms });
      expect(second.created_at_ms - first.created_at_ms).toBe(5_000);
    },
  },
];
