import { describe, expect, it } from 'vitest';
import { openRows } from '../../../support/in-process-store.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { append, settle } from '../../../support/outbox/rows.ts';

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
});
