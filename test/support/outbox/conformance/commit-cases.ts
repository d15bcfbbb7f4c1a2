import { expect } from 'vitest';
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

/** What an acknowledged record is, and that a restart loses nothing of it. Contract section 3, Acknowledge to Restart. */
export const COMMIT_CASES: Case[] = [
  {
    name: 'an empty outbox has nothing to attempt and nothing to show',
    async run({ store, list, find, counts }) {
      expect(await store.untried(0, 10)).toEqual({ records: [], more: false });
      expect(await store.due(10)).toEqual({ records: [], next_due_ms: null });
      expect(await store.overdue(10)).toEqual({ records: [], next_deadline_ms: null });
      expect(await store.probeCandidate([])).toBeNull();
      expect(await list({ limit: 10 })).toEqual({ deliveries: [], next_cursor: null });
      expect(await find('evt_019a2b3c-4d5e-7f60-8123-000000000001')).toBeNull();
      expect(await counts()).toEqual({ pending: 0, oldest_at_ms: null });
    },
  },
  {
    name: 'a committed record is untried, with its window and the request that is sent',
    async run(outbox) {
      const [event_id] = await outbox.append(1);
      const [record] = (await outbox.store.untried(0, 10)).records as [DueRecord];
      expect(record).toMatchObject({
        event_id,
        event_type: outbox.event_type,
        attempts: 0,
        failures: 0,
        probe_ms: 0,
      });
      const left_ms = record.deadline_ms - outbox.store.now();
      expect(left_ms).toBeLessThanOrEqual(outbox.window_ms);
      expect(left_ms).toBeGreaterThan(outbox.window_ms - 60_000);
      const { headers, body } = await requestOf(outbox, record);
      expect(JSON.parse(body)).toMatchObject({ event_id, event_type: outbox.event_type });
      expect(headers).toMatchObject({ 'ce-id': event_id, 'Content-Type': 'application/json' });
      expect(headers['X-Service-Signature']).toMatch(/^[0-9a-f]{64}$/);
    },
  },
  {
    name: 'untried records come in commit order, a page at a time, and each page says whether others follow',
    async run({ store, append }) {
      const event_ids = [...(await append(3)), ...(await append(4))];
      const first = await store.untried(0, 3);
      expect([idsOf(first.records), first.more]).toEqual([event_ids.slice(0, 3), true]);
      const rest = await store.untried(first.records.at(-1)?.id ?? 0, 4);
      expect([idsOf(rest.records), rest.more]).toEqual([event_ids.slice(3), false]);
      expect(await store.untried(rest.records.at(-1)?.id ?? 0, 4)).toEqual({ records: [], more: false });
      const ids = [...first.records, ...rest.records].map(({ id }) => id);
      expect(ids).toEqual(ids.toSorted((a, b) => a - b));
    },
  },
  {
    name: 'untried records are those after an id, as often as they are read, with the ids that they had',
    async run({ store, append }) {
      await append(5);
      const { records } = await store.untried(0, 2);
      const ids = async (after_id: number, limit: number) =>
        (await store.untried(after_id, limit)).records.map(({ id, event_id }) => [id, event_id]);
      const all = await ids(0, 10);
      expect(all).toHaveLength(5);
      expect(all.slice(0, 2)).toEqual(records.map(({ id, event_id }) => [id, event_id]));
      for (const [i, [id]] of all.entries()) expect(await ids(Number(id), 10)).toEqual(all.slice(i + 1));
      expect(await ids(0, 3)).toEqual(all.slice(0, 3));
    },
  },
  {
    name: 'a record is loaded with its request, whichever verb read it, and nothing of it is changed',
    async run(outbox) {
      const { store } = outbox;
      const [untried, tried] = (await appended(outbox, 2)) as [DueRecord, DueRecord];
      const sent = await requestOf(outbox, tried);
      await store.record(outcomeOf(tried, retryAt(store.now() - 1)));
      const [due] = (await store.due(10)).records as [DueRecord];
      const probe = (await store.probeCandidate([])) as DueRecord;
      for (const record of [untried, due, probe]) {
        const { id, event_id, event_type, attempts, failures, deadline_ms, probe_ms, created_at_ms } = record;
        const schedule = {
          id,
          event_id,
          event_type,
          attempts,
          failures,
          deadline_ms,
          probe_ms,
          created_at_ms,
        };
        const loaded = await store.load(record);
        expect(loaded).toMatchObject(schedule);
        expect(JSON.parse(loaded?.body.toString() ?? '')).toMatchObject({ event_id, event_type });
        expect(loaded?.headers).toMatchObject({ 'ce-id': event_id, 'ce-type': event_type });
        expect(await requestOf(outbox, record)).toEqual(await requestOf(outbox, record));
        expect(record).toMatchObject(schedule);
      }
      expect(await requestOf(outbox, due)).toEqual(sent);
    },
  },
  {
    name: 'the listener is called after a commit that added records, with them or to say that they must be read',
    async run({ store, append }) {
      const calls: (string[] | null)[] = [];
      store.onRecordsAdded({
        hasRoom: () => true,
        onAdded: (records) => calls.push(records && idsOf(records)),
      });
      expect(calls).toEqual([]);
      const [event_id] = await append(1);
      await expect.poll(() => calls.length).toBeGreaterThan(0);
      for (const call of calls) expect(call ?? [event_id]).toEqual([event_id]);
    },
  },
  {
    name: 'a restart finds records, schedules and attempts as they were committed, and the clock goes on',
    async run(outbox) {
      const { store } = outbox;
      const [untried, retried, done] = (await appended(outbox, 3)) as [DueRecord, DueRecord, DueRecord];
      const due_ms = store.now() + 3_600_000;
      await store.record(outcomeOf(retried, retryAt(due_ms, due_ms - 1_000), { response_body: 'busy' }));
      await store.record(outcomeOf(done, { state: 'delivered' }));
      // The machine's two clocks are not read at one moment: as wall time, a schedule may differ by a millisecond.
      const bare = <View extends { next_attempt_at: string | null }>(view: View | null) =>
        view && { ...view, next_attempt_at: null };
      const shown = async (from: typeof outbox) => [
        (await from.list({ limit: 10 })).deliveries.map(bare),
        bare(await from.find(retried.event_id)),
        bare(await from.find(done.event_id)),
        (await from.counts()).pending,
      ];
      const [before, before_ms] = [await shown(outbox), store.now()];
      const again = await outbox.restart();
      expect(await shown(again)).toEqual(before);
      expect(idsOf((await again.store.untried(0, 10)).records)).toEqual([untried.event_id]);
      expect((await again.store.due(10)).next_due_ms).toBe(due_ms);
      const probe = await again.store.probeCandidate([]);
      expect(probe).toMatchObject({
        event_id: retried.event_id,
        attempts: 1,
        failures: 1,
        probe_ms: due_ms - 1_000,
        deadline_ms: retried.deadline_ms,
      });
      expect(again.store.now()).toBeGreaterThanOrEqual(before_ms);
    },
  },
  {
    name: 'what was in flight at a kill is attempted again, with the same bytes and the same attempt number',
    async run(outbox) {
      const record = await appendedOne(outbox);
      const sent = await requestOf(outbox, record);
      const again = await outbox.restart();
      const [same] = (await again.store.untried(0, 10)).records as [DueRecord];
      expect(same).toMatchObject({ event_id: record.event_id, attempts: 0 });
      expect(await requestOf(again, same)).toEqual(sent);
    },
  },
  {
    name: 'records that are committed after a restart come after those of before',
    async run(outbox) {
      const before = await outbox.append(2);
      const again = await outbox.restart();
      const after = await again.append(2);
      expect(idsOf((await again.store.untried(0, 10)).records)).toEqual([...before, ...after]);
      const { deliveries } = await again.list({ limit: 10 });
      expect(idsOf(deliveries)).toEqual([...before, ...after].toReversed());
    },
  },
];
