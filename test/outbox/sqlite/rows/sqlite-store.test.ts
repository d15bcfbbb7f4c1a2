import { describe, expect, it } from 'vitest';
import { draft, openRows } from '../../../support/in-process-store.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { append, change, event, sequencesOf, settle } from '../../../support/outbox/rows.ts';
import { scratchFolder } from '../../../support/scratch.ts';

describe('a transaction', () => {
  it('leaves nothing behind after a rollback: neither rows, counts, sequences nor keys', () => {
    const { rows, db } = openRows(new ManualClock());
    append(rows, '{}');
    const counts = rows.counts();
    rows.begin();
    rows.added.append({ drafts: [draft('{"a":1}', 'key'), draft()] });
    rows.added.append(event('sandbox.ready'));
    rows.rollback();
    expect(rows.counts()).toEqual(counts);
    expect(rows.is_ready).toBe(false);
    expect(db.prepare('SELECT count(*) FROM records').pluck().get()).toBe(1);
    expect(sequencesOf(change(rows, () => rows.added.append({ drafts: [draft('{"b":2}', 'key')] })))).toEqual(
      [2],
    );
  });

  it('makes rows that a new process finds, counts and numbers going on', () => {
    const clock = new ManualClock();
    const state_dir = scratchFolder();
    const first = openRows(clock, { state_dir });
    append(first.rows, '{}', '{}');
    settle(first.rows, 1, { state: 'delivered' });
    first.db.close();
    const { rows } = openRows(clock, { state_dir });
    expect(rows.counts()).toMatchObject({ pending: 1, delivered: 1 });
    expect(rows.backlog.untried(0, 10).records.map(({ id }) => id)).toEqual([2]);
    expect(sequencesOf(append(rows, '{}'))).toEqual([3]);
  });
});
