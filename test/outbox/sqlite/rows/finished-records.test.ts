import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { OutboxCounts } from '../../../../src/contract/deliveries.ts';
import { draft, openRows } from '../../../support/in-process-store.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { append, change, idsOf, keep, sequencesOf, settle } from '../../../support/outbox/rows.ts';

const HOUR_MS = 60 * 60 * 1000;

describe('a replay', () => {
  it('makes a finished record pending with the same bytes and a new window, its attempts going on', async () => {
    const clock = new ManualClock();
    const { rows } = openRows(clock, { window_ms: HOUR_MS });
    const [event_id = ''] = idsOf(append(rows, '{"a":1.10}'));
    const before = rows.backlog.untried(0, 1).records[0];
    settle(rows, 1, { state: 'failed' }, 3);
    await clock.advance(5 * HOUR_MS);
    expect(change(rows, () => rows.finished.replay(event_id))).toBe(true);
    const { records } = rows.backlog.due(10);
    expect(records).toMatchObject([{ id: 1, attempts: 3, failures: 0, deadline_ms: rows.now() + HOUR_MS }]);
    expect(records[0]?.body).toBe(before?.body);
    expect(records[0]?.headers).toEqual(before?.headers);
    expect(rows.counts()).toMatchObject({ pending: 1, failed: 0 });
  });

  it('leaves a pending record as it is and knows no other', () => {
    const { rows } = openRows(new ManualClock());
    const [event_id = ''] = idsOf(append(rows, '{}'));
    expect(change(rows, () => rows.finished.replay(event_id))).toBe(true);
    expect(rows.backlog.untried(0, 10).records).toHaveLength(1);
    expect(change(rows, () => rows.finished.replay('evt_x'))).toBe(false);
  });

  it('of a delivered record counts its bytes again', () => {
    const { rows } = openRows(new ManualClock());
    const [event_id = ''] = idsOf(append(rows, '{}'));
    const { bytes } = rows.counts();
    settle(rows, 1, { state: 'delivered' });
    expect(rows.counts().bytes).toBe(0);
    change(rows, () => rows.finished.replay(event_id));
    expect(rows.counts().bytes).toBe(bytes);
  });
});

describe('a full outbox', () => {
  const undelivered = ({ pending, failed, expired }: OutboxCounts) => pending + failed + expired;

  it('makes room of what will not be sent any more, oldest first, and of nothing else', async () => {
    const clock = new ManualClock();
    const { rows, db } = openRows(clock, { max_records: 5 });
    append(rows, '{}', '{}', '{}', '{}', '{}');
    settle(rows, 3, { state: 'failed' });
    await clock.advance(1_000);
    settle(rows, 1, { state: 'expired' });
    settle(rows, 2, { state: 'delivered' });
    expect(append(rows, '{}', '{}').outcome).toBe('committed');
    const ids = () => db.prepare('SELECT id FROM records ORDER BY id').pluck().all();
    expect([ids(), rows.takeDropped()]).toEqual([[1, 2, 4, 5, 6, 7], 1]);
    expect(append(rows, '{}', '{}').outcome).toBe('full');
    expect(append(rows, '{}').outcome).toBe('committed');
    expect([ids(), rows.takeDropped(), rows.takeDropped()]).toEqual([[2, 4, 5, 6, 7, 8], 1, 0]);
    expect(db.prepare('SELECT count(*) FROM attempts').pluck().get()).toBe(1);
  });

  it('keeps to its bound of bytes, however many records one takes the room of', () => {
    const { rows } = openRows(new ManualClock(), { max_bytes: 60_000 });
    append(rows, ...Array(100).fill('{}'));
    for (let id = 1; id <= 100; id++) settle(rows, id, { state: 'failed' });
    expect(append(rows, `{"text":"${'x'.repeat(40_000)}"}`).outcome).toBe('committed');
    expect(rows.counts()).toMatchObject({ pending: 1, failed: 100 - rows.takeDropped() });
    expect(rows.counts().bytes).toBeLessThanOrEqual(60_000);
    expect(rows.counts().bytes).toBeGreaterThan(59_000);
  });

  it('forgets nothing of a commit that was taken back', () => {
    const { rows } = openRows(new ManualClock(), { max_records: 2 });
    append(rows, '{}', '{}');
    for (const id of [1, 2]) settle(rows, id, { state: 'failed' });
    rows.begin();
    rows.added.append({ drafts: [draft()] });
    rows.finished.makeRoom();
    rows.rollback();
    expect([rows.counts().failed, rows.takeDropped()]).toEqual([2, 0]);
  });

  it('of any course of events refuses only what pending records leave no room for, and keeps to its bound', () => {
    const step = fc.oneof(
      fc.record({ append: fc.integer({ min: 1, max: 4 }) }),
      fc.record({ settle: fc.nat(7), state: fc.constantFrom('delivered', 'failed', 'expired') }),
      fc.record({ replay: fc.nat(7) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const { rows, db } = openRows(new ManualClock(), { max_records: 8 });
        db.pragma('synchronous = OFF');
        const nth = (state: string, n: number) =>
          db
            .prepare(`SELECT id, event_id FROM records JOIN deliveries USING (id) WHERE ${state} ORDER BY id`)
            .all()[n] as { id: number; event_id: string } | undefined;
        for (const each of steps) {
          if ('append' in each) {
            const { pending } = rows.counts();
            const { outcome } = append(rows, ...Array(each.append).fill('{}'));
            expect(outcome).toBe(pending + each.append > 8 ? 'full' : 'committed');
          } else if ('settle' in each) {
            const pending = nth("state = 'pending'", each.settle);
            if (pending) settle(rows, pending.id, { state: each.state as 'failed' }, 100);
          } else {
            const failed = nth("state IN ('failed', 'expired')", each.replay);
            if (failed) change(rows, () => rows.finished.replay(failed.event_id));
          }
          expect(undelivered(rows.counts())).toBeLessThanOrEqual(8);
          const sums = db
            .prepare(`SELECT coalesce(sum(size_bytes) FILTER (WHERE state != 'delivered'), 0) AS bytes,
              coalesce(sum(size_bytes) FILTER (WHERE state = 'pending'), 0) AS pending_bytes FROM deliveries`)
            .get();
          expect(db.prepare('SELECT bytes, pending_bytes FROM outbox').get()).toEqual(sums);
        }
        db.close();
      }),
      { numRuns: 20 },
    );
  });
});

describe('pruning', () => {
  it('removes what was kept long enough, oldest first, a part at a time', async () => {
    const clock = new ManualClock();
    const { rows, db } = openRows(clock);
    append(rows, ...Array(10).fill('{}'));
    for (let id = 1; id <= 6; id++) settle(rows, id, { state: 'delivered' });
    await clock.advance(HOUR_MS);
    for (let id = 7; id <= 8; id++) settle(rows, id, { state: 'delivered' });
    expect(rows.finished.hasPrunable(keep('delivered', HOUR_MS, 100))).toBe(true);
    expect(change(rows, () => rows.finished.prune(keep('delivered', HOUR_MS, 100), 4))).toBe(4);
    expect(change(rows, () => rows.finished.prune(keep('delivered', HOUR_MS, 100), 4))).toBe(2);
    expect(rows.finished.hasPrunable(keep('delivered', HOUR_MS, 100))).toBe(false);
    expect(rows.counts()).toMatchObject({ delivered: 2, pending: 2 });
    expect(db.prepare('SELECT id FROM records ORDER BY id').pluck().all()).toEqual([7, 8, 9, 10]);
    expect(db.prepare('SELECT count(*) FROM attempts').pluck().get()).toBe(2);
  });

  it('removes the surplus over a number of records', () => {
    const { rows } = openRows(new ManualClock());
    append(rows, ...Array(5).fill('{}'));
    for (let id = 1; id <= 5; id++) settle(rows, id, { state: 'delivered' });
    expect(change(rows, () => rows.finished.prune(keep('delivered', HOUR_MS, 2), 100))).toBe(3);
    expect(rows.counts().delivered).toBe(2);
  });

  it('removes delivered records, oldest first, until the rest takes no more than it may', () => {
    const { rows, db } = openRows(new ManualClock());
    const payload = `{"text":"${'x'.repeat(10_000)}"}`;
    append(rows, ...Array(6).fill(payload));
    for (let id = 1; id <= 5; id++) settle(rows, id, { state: 'delivered' });
    const rule = keep('delivered', HOUR_MS, 100, 25_000);
    expect(rows.finished.hasPrunable(rule)).toBe(true);
    expect(change(rows, () => rows.finished.prune(rule, 2))).toBe(2);
    expect(change(rows, () => rows.finished.prune(rule, 100))).toBe(1);
    expect(rows.finished.hasPrunable(rule)).toBe(false);
    expect(db.prepare('SELECT id FROM records ORDER BY id').pluck().all()).toEqual([4, 5, 6]);
  });

  it('makes room for others where it removes failed records', () => {
    const { rows } = openRows(new ManualClock());
    append(rows, '{}', '{}');
    settle(rows, 1, { state: 'failed' });
    const { bytes } = rows.counts();
    change(rows, () => rows.finished.prune(keep('failed', -1, 0), 10));
    expect(rows.counts()).toMatchObject({ failed: 0, pending: 1, bytes: bytes / 2 });
  });

  it('gives no id or sequence a second time', () => {
    const { rows } = openRows(new ManualClock());
    append(rows, '{}', '{}');
    settle(rows, 1, { state: 'delivered' });
    settle(rows, 2, { state: 'delivered' });
    change(rows, () => rows.finished.prune(keep('delivered', -1, 0), 10));
    expect(sequencesOf(append(rows, '{}'))).toEqual([3]);
    expect(rows.backlog.untried(0, 10).records[0]?.id).toBe(3);
  });
});
