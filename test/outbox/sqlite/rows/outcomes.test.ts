import { describe, expect, it } from 'vitest';
import { Inspection } from '../../../../src/outbox/sqlite/rows/inspection.ts';
import { openRows } from '../../../support/in-process-store.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { append, change, settle } from '../../../support/outbox/rows.ts';
import { delivered } from '../../../support/outbox/writer.ts';

describe('an outcome', () => {
  it('of a record that is no longer pending changes nothing', () => {
    const { rows } = openRows(new ManualClock());
    append(rows, '{}');
    settle(rows, 1, { state: 'delivered' });
    const counts = rows.counts();
    settle(rows, 1, { state: 'failed' }, 2);
    settle(rows, 999, { state: 'delivered' });
    expect(rows.counts()).toEqual(counts);
  });

  it('among many of one commit counts once, and changes no record that was tried before or is final', () => {
    const clock = new ManualClock();
    const { rows, db } = openRows(clock);
    append(rows, '{}', '{}', '{}', '{}');
    settle(rows, 2, { state: 'failed' });
    settle(rows, 3, { state: 'pending', due_ms: rows.now() + 500, probe_ms: rows.now() + 500 });
    const outcomes = [1, 1, 2, 3, 999].map((id) => ({
      ...delivered(id),
      duration_ms: 1.4,
      response_body: 'ok',
    }));
    change(rows, () => rows.outcomes.record(outcomes));
    expect(rows.counts()).toMatchObject({ pending: 2, delivered: 1, failed: 1 });
    const inspection = new Inspection(db, clock, () => rows);
    const views = inspection.list({ limit: 10 }).deliveries;
    expect(views.map(({ state, attempt_count }) => [state, attempt_count])).toEqual([
      ['pending', 0],
      ['pending', 1],
      ['failed', 1],
      ['delivered', 1],
    ]);
    expect(inspection.find(views[3]?.event_id ?? '')?.attempts).toMatchObject([
      { attempt: 1, duration_ms: 1, status: 200, response_body: 'ok' },
    ]);
  });
});
