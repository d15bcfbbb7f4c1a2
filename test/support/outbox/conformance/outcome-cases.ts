import { expect } from 'vitest';
import { FINAL_STATES } from '../../../../src/contract/words.ts';
import type { DueRecord } from '../../../../src/outbox/store.ts';
import type { Decision } from '../../../../src/webhook/retry.ts';
import { appended, appendedOne, type Case, idsOf, outcomeOf, retryAt } from './outbox-under-test.ts';

/** What an attempt leaves behind. Contract section 3, and section 4, Deliveries. */
export const OUTCOME_CASES: Case[] = [
  ...FINAL_STATES.map(
    (state): Case => ({
      name: `an outcome "${state}" ends its record: it is not attempted again, and shown with its attempt`,
      async run(outbox) {
        const { store } = outbox;
        const record = await appendedOne(outbox);
        await store.record(outcomeOf(record, { state }, { status: 418, error_detail: "418 I'm a teapot" }));
        expect(await store.due(10)).toEqual({ records: [], next_due_ms: null });
        expect(await store.overdue(10)).toEqual({ records: [], next_deadline_ms: null });
        expect(await store.probeCandidate([])).toBeNull();
        expect((await outbox.counts()).pending).toBe(0);
        const detail = await outbox.find(record.event_id);
        expect(detail).toMatchObject({
          state,
          finished_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*\.\d{3}Z$/),
          next_attempt_at: null,
          attempt_count: 1,
          last_status: 418,
          last_error: null,
        });
        expect(detail?.attempts).toEqual([
          {
            attempt: 1,
            started_at: '2026-01-01T00:00:00.000Z',
            duration_ms: 12,
            status: 418,
            error: null,
            error_detail: "418 I'm a teapot",
            next_attempt_at: null,
            response_body: 'thanks',
          },
        ]);
        const again = await outbox.restart();
        expect((await again.store.untried(0, 10)).records).toEqual([]);
      },
    }),
  ),
  {
    name: 'an outcome that asks for a retry keeps its record pending, its attempts and failures counted',
    async run(outbox) {
      const { store } = outbox;
      const record = await appendedOne(outbox);
      await store.record(outcomeOf(record, retryAt(store.now() - 500)));
      const [again] = (await store.due(1)).records as [DueRecord];
      expect(again).toMatchObject({ event_id: record.event_id, attempts: 1, failures: 1 });
      expect(again).toMatchObject({ deadline_ms: record.deadline_ms, created_at_ms: record.created_at_ms });
      const silent = {
        status: null,
        error: 'timeout',
        error_detail: 'no answer',
        response_body: null,
      } as const;
      await store.record(outcomeOf(again, retryAt(store.now() - 1), silent));
      expect((await store.due(1)).records).toMatchObject([{ attempts: 2, failures: 2 }]);
      expect((await outbox.counts()).pending).toBe(1);
      const detail = await outbox.find(record.event_id);
      expect(detail).toMatchObject({
        state: 'pending',
        finished_at: null,
        attempt_count: 2,
        last_status: null,
        last_error: 'timeout',
        last_error_detail: 'no answer',
      });
      expect(
        detail?.attempts.map(({ attempt, status, error, error_detail, response_body }) => [
          attempt,
          status,
          error,
          error_detail,
          response_body,
        ]),
      ).toEqual([
        [1, 503, null, null, 'thanks'],
        [2, null, 'timeout', 'no answer', null],
      ]);
    },
  },
  {
    name: 'a schedule is shown as wall time, and kept in whole milliseconds',
    takes_time: true,
    async run(outbox) {
      const { store } = outbox;
      const record = await appendedOne(outbox);
      const created_ms = Date.parse((await outbox.find(record.event_id))?.created_at ?? '');
      await outbox.advance(1_000);
      const due_ms = store.now() + 500.25;
      await store.record(outcomeOf(record, retryAt(due_ms), { duration_ms: 1.75 }));
      const detail = await outbox.find(record.event_id);
      const expected = new Date(created_ms + 1_500).toISOString();
      expect(detail).toMatchObject({ next_attempt_at: expected });
      expect(detail?.attempts).toMatchObject([{ next_attempt_at: expected, duration_ms: 2 }]);
      expect((await store.due(10)).next_due_ms).toBe(Math.round(due_ms));
      await outbox.advance(501);
      const [again] = (await store.due(1)).records as [DueRecord];
      await store.record(outcomeOf(again, { state: 'delivered' }));
      expect(await outbox.find(record.event_id)).toMatchObject({
        finished_at: new Date(created_ms + 1_501).toISOString(),
      });
    },
  },
  {
    name: 'an outcome that is recorded twice counts once',
    async run(outbox) {
      const { store } = outbox;
      const [retried, done] = (await appended(outbox, 2)) as [DueRecord, DueRecord];
      const retry = outcomeOf(retried, retryAt(store.now() - 1));
      const delivered = outcomeOf(done, { state: 'delivered' });
      await Promise.all([retry, retry, delivered, delivered].map((outcome) => store.record(outcome)));
      expect((await store.due(10)).records).toMatchObject([{ attempts: 1, failures: 1 }]);
      expect((await outbox.counts()).pending).toBe(1);
      for (const { event_id } of [retried, done]) {
        expect((await outbox.find(event_id))?.attempts).toHaveLength(1);
      }
    },
  },
  {
    name: 'an outcome of a record that is no longer pending changes nothing',
    async run(outbox) {
      const { store } = outbox;
      const [record, other] = (await appended(outbox, 2)) as [DueRecord, DueRecord];
      await store.record(outcomeOf(record, { state: 'delivered' }));
      const before = await outbox.find(record.event_id);
      await store.record(outcomeOf(record, { state: 'failed' }, { attempt: 2 }));
      await store.record(outcomeOf({ ...other, id: 999_999 }, { state: 'delivered' }));
      expect(await outbox.find(record.event_id)).toEqual(before);
      expect((await outbox.counts()).pending).toBe(1);
    },
  },
  {
    name: 'outcomes that are recorded at once are all kept, each with its own record',
    async run(outbox) {
      const { store } = outbox;
      const records = await appended(outbox, 150);
      const decisions: Decision[] = [
        { state: 'delivered' },
        { state: 'failed' },
        { state: 'expired' },
        retryAt(store.now() + 3_600_000),
      ];
      const decided = records.map((_, i) => decisions[i % 4] as Decision);
      await Promise.all(
        records.map((record, i) =>
          store.record(outcomeOf(record, decided[i] as Decision, { response_body: `to ${record.event_id}` })),
        ),
      );
      const { deliveries } = await outbox.list({ limit: 1_000 });
      expect(idsOf(deliveries)).toEqual(idsOf(records).toReversed());
      expect(deliveries.map(({ state }) => state).toReversed()).toEqual(decided.map(({ state }) => state));
      for (const { event_id } of [records[0], records[149]] as DueRecord[]) {
        const [attempt] = (await outbox.find(event_id))?.attempts ?? [];
        expect(attempt?.response_body).toBe(`to ${event_id}`);
      }
    },
  },
];
