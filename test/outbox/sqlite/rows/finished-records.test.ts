import { describe, expect, it } from 'vitest';
import { openRows } from '../../../support/in-process-store.ts';
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
