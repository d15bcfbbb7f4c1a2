import { describe, expect, it } from 'vitest';
import { draft, openRows } from '../../../support/in-process-store.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { append, change, sequencesOf, settle } from '../../../support/outbox/rows.ts';
import { scratchFolder } from '../../../support/scratch.ts';

const HOUR_MS = 60 * 60 * 1000;

describe('another sandbox', () => {
  it("finds the first one's records set aside, and numbers and keys new", () => {
    const clock = new ManualClock();
    const state_dir = scratchFolder();
    const parent = openRows(clock, { state_dir, sandbox_id: 'parent' });
    change(parent.rows, () =>
      parent.rows.added.append({ drafts: [draft('{}', 'k'), draft(), draft(), draft()] }),
    );
    settle(parent.rows, 1, { state: 'delivered' });
    settle(parent.rows, 2, { state: 'failed' });
    const parent_ids = parent.rows.backlog.untried(0, 10).records.map(({ event_id }) => event_id);
    parent.db.close();
    const { rows } = openRows(clock, { state_dir, sandbox_id: 'child' });
    expect(rows.counts()).toEqual({ pending: 0, delivered: 0, failed: 0, expired: 0, foreign: 4, bytes: 0 });
    expect(rows.backlog.untried(0, 10).records).toEqual([]);
    const first = change(rows, () => rows.added.append({ drafts: [draft('{"other":1}', 'k')] }));
    expect(sequencesOf(first)).toEqual([1]);
    expect([rows.idBefore(0), rows.idBefore(1)]).toEqual([4, 5]);
    expect(rows.finished.replay(parent_ids[0] as string)).toBe(false);
    expect(rows.backlog.untried(0, 10).records.map(({ id }) => id)).toEqual([5]);
  });

  it('leaves what was pending to the one that comes back: its states, numbers and keys are as it left them', () => {
    const clock = new ManualClock();
    const state_dir = scratchFolder();
    const first = openRows(clock, { state_dir, sandbox_id: 'sb-1' });
    change(first.rows, () =>
      first.rows.added.append({ drafts: [draft('{"n":1}', 'k'), draft(), draft(), draft()] }),
    );
    settle(first.rows, 2, { state: 'delivered' });
    settle(first.rows, 3, { state: 'pending', due_ms: first.rows.now() + 5, probe_ms: first.rows.now() + 5 });
    const counts = first.rows.counts();
    first.db.close();
    const other = openRows(clock, { state_dir, sandbox_id: '' });
    append(other.rows, '{}', '{}');
    expect(other.rows.counts()).toMatchObject({ pending: 2, foreign: 4 });
    expect(other.rows.foreignPending()).toBe(3);
    other.db.close();
    const { rows } = openRows(clock, { state_dir, sandbox_id: 'sb-1' });
    expect(rows.counts()).toEqual({ ...counts, foreign: 2 });
    expect(rows.backlog.untried(0, 10).records.map(({ id }) => id)).toEqual([1, 4]);
    expect(rows.backlog.due(10).next_due_ms).not.toBeNull();
    const offer = (payload: string) =>
      change(rows, () => rows.added.append({ drafts: [draft(payload, 'k')] })).outcome;
    expect([offer('{"n":1}'), offer('{"n":2}')]).toEqual(['repeated', 'conflict']);
    expect(sequencesOf(append(rows, '{}'))).toEqual([5]);
  });

  it('has its records removed after a retention that counts from when it left, and its numbers are kept', async () => {
    const clock = new ManualClock();
    const state_dir = scratchFolder();
    const first = openRows(clock, { state_dir, sandbox_id: 'sb-1' });
    append(first.rows, '{}', '{}', '{}');
    settle(first.rows, 1, { state: 'delivered' });
    first.db.close();
    const { rows, db } = openRows(clock, { state_dir, sandbox_id: 'sb-2' });
    append(rows, '{}');
    const retention = { delivered_ms: HOUR_MS, all_ms: 5 * HOUR_MS };
    const prune = () => change(rows, () => rows.finished.pruneForeign(retention, 10));
    expect(rows.finished.hasPrunableForeign(retention)).toBe(false);
    await clock.advance(HOUR_MS);
    expect([prune(), prune()]).toEqual([1, 0]);
    await clock.advance(4 * HOUR_MS);
    expect([prune(), prune()]).toEqual([2, 0]);
    expect(rows.counts()).toMatchObject({ pending: 1, foreign: 0 });
    db.close();
    const again = openRows(clock, { state_dir, sandbox_id: 'sb-1' });
    expect(again.rows.counts()).toMatchObject({ pending: 0, delivered: 0, failed: 0, foreign: 1 });
    expect(sequencesOf(append(again.rows, '{}'))).toEqual([4]);
  });

  it('is not what the same one is after a restart', () => {
    const clock = new ManualClock();
    const state_dir = scratchFolder();
    const first = openRows(clock, { state_dir });
    append(first.rows, '{}');
    first.db.close();
    expect(openRows(clock, { state_dir }).rows.counts()).toMatchObject({ pending: 1, foreign: 0 });
  });
});
