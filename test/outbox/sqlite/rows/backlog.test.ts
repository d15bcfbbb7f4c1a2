import { expect, it } from 'vitest';
import { openRows } from '../../../support/in-process-store.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { append } from '../../../support/outbox/rows.ts';

// What the backlog gives when, and in which order, is in the conformance suite.

it('a page of the backlog is some mebibytes at most, however large the records are, and at least one', () => {
  const { rows } = openRows(new ManualClock());
  const payload = `{"text":"${'x'.repeat(1_000_000)}"}`;
  append(rows, ...Array(12).fill(payload));
  const seen: number[] = [];
  for (let more = true; more; ) {
    const page = rows.backlog.untried(seen.at(-1) ?? 0, 256);
    expect(page.records.length).toBeLessThanOrEqual(5);
    seen.push(...page.records.map(({ id }) => id));
    more = page.more;
  }
  expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
});
