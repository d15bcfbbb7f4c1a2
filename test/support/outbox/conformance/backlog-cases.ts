import { expect } from 'vitest';
import type { DueRecord } from '../../../../src/outbox/store.ts';
import { appended, type Case, idsOf, outcomeOf, retryAt } from './outbox-under-test.ts';

const SECOND_MS = 1_000;

/** What is attempted when: due, overdue, probe. Contract section 3, Backoff to Order. */
export const BACKLOG_CASES: Case[] = [
  {
    name: 'a retry is due at its time and not before, and the next due time is told',
    takes_time: true,
    async run(outbox) {
      const { store } = outbox;
      const [first, second, untried] = (await appended(outbox, 3)) as [DueRecord, DueRecord, DueRecord];
      const now_ms = store.now();
      await store.record(outcomeOf(second, retryAt(now_ms + 500)));
      await store.record(outcomeOf(first, retryAt(now_ms + 2 * SECOND_MS)));
      expect(await store.due(10)).toEqual({ records: [], next_due_ms: now_ms + 500 });
      await outbox.advance(499);
      expect((await store.due(10)).records).toEqual([]);
      await outbox.advance(1);
      expect(await store.due(10)).toMatchObject({
        records: [{ event_id: second.event_id, attempts: 1, failures: 1, deadline_ms: second.deadline_ms }],
        next_due_ms: now_ms + 2 * SECOND_MS,
      });
      await outbox.advance(1_500);
      const { records, next_due_ms } = await store.due(10);
      expect([idsOf(records), next_due_ms]).toEqual([[second.event_id, first.event_id], null]);
      expect(idsOf(records)).not.toContain(untried.event_id);
    },
  },
  {
    name: 'due retries come earliest first, in commit order where they are due together, up to the limit',
    async run(outbox) {
      const { store } = outbox;
      const [a, b, c, d] = (await appended(outbox, 4)) as [DueRecord, DueRecord, DueRecord, DueRecord];
      const now_ms = store.now();
      for (const [record, due_ms] of [
        [d, now_ms - 20],
        [c, now_ms - 10],
        [b, now_ms - 10],
        [a, now_ms - 5],
      ] as const) {
        await store.record(outcomeOf(record, retryAt(due_ms)));
      }
      const { records, next_due_ms } = await store.due(3);
      expect(idsOf(records)).toEqual(idsOf([d, b, c]));
      expect(next_due_ms).toBe(now_ms - 5);
      expect(idsOf((await store.due(4)).records)).toEqual(idsOf([d, b, c, a]));
    },
  },
  {
    name: 'a tried record is overdue once its window is over, the earliest first; one never tried is not',
    takes_time: true,
    async run(outbox) {
      const { store, window_ms } = outbox;
      const [first] = (await appended(outbox, 1)) as [DueRecord];
      await outbox.advance(SECOND_MS);
      const [second, untried] = (await appended(outbox, 2)) as [DueRecord, DueRecord];
      const late_ms = store.now() + 10 * window_ms;
      // The later window is scheduled first: neither due times nor the order of outcomes count.
      await store.record(outcomeOf(second, retryAt(late_ms)));
      await store.record(outcomeOf(first, retryAt(late_ms + 1)));
      expect(await store.overdue(10)).toEqual({ records: [], next_deadline_ms: first.deadline_ms });
      await outbox.advance(window_ms - SECOND_MS);
      expect(await store.overdue(10)).toMatchObject({
        records: [{ event_id: first.event_id, attempts: 1 }],
        next_deadline_ms: second.deadline_ms,
      });
      await outbox.advance(SECOND_MS);
      const { records, next_deadline_ms } = await store.overdue(10);
      expect([idsOf(records), next_deadline_ms]).toEqual([idsOf([first, second]), null]);
      expect(idsOf((await store.overdue(1)).records)).toEqual([first.event_id]);
      expect((await store.overdue(1)).next_deadline_ms).toBe(second.deadline_ms);
      expect(idsOf(records)).not.toContain(untried.event_id);
    },
  },
  {
    name: 'the probe is the tried record that may go first, apart from those in flight',
    async run(outbox) {
      const { store } = outbox;
      const [a, b, c] = (await appended(outbox, 3)) as [DueRecord, DueRecord, DueRecord];
      expect(await store.probeCandidate([])).toBeNull();
      const now_ms = store.now();
      // Whose backoff is short is due late where the receiver asked for it: the probe has times of its own.
      await store.record(outcomeOf(a, retryAt(now_ms + 500, now_ms + 100)));
      await store.record(outcomeOf(b, retryAt(now_ms + 2_000, now_ms + 50)));
      const first = (await store.probeCandidate([])) as DueRecord;
      expect(first).toMatchObject({ event_id: b.event_id, attempts: 1, probe_ms: now_ms + 50 });
      const second = (await store.probeCandidate([first.id])) as DueRecord;
      expect(second).toMatchObject({ event_id: a.event_id, probe_ms: now_ms + 100 });
      expect(await store.probeCandidate([first.id, second.id])).toBeNull();
      await store.record(outcomeOf(c, { state: 'failed' }));
      expect(await store.probeCandidate([first.id, second.id])).toBeNull();
    },
  },
  {
    name: 'a record has one id for the dispatcher, whichever verb reads it',
    async run(outbox) {
      const { store } = outbox;
      const [record] = (await appended(outbox, 1)) as [DueRecord];
      await store.record(outcomeOf(record, retryAt(store.now() - 1)));
      const [due] = (await store.due(10)).records as [DueRecord];
      expect((await store.probeCandidate([]))?.id).toBe(due.id);
      expect(await store.probeCandidate([due.id])).toBeNull();
    },
  },
];
