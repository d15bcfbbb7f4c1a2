import { describe, expect, it } from 'vitest';
import { openRows } from '../../../support/in-process-store.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { append, settle } from '../../../support/outbox/rows.ts';

describe('reading the backlog', () => {
  it('gives records in commit order, a part at a time', () => {
    const { rows } = openRows(new ManualClock());
    append(rows, ...Array(7).fill('{}'));
    const first = rows.backlog.untried(0, 3);
    expect(first).toMatchObject({ more: true, records: [{ id: 1 }, { id: 2 }, { id: 3 }] });
    expect(rows.backlog.untried(3, 4)).toMatchObject({
      more: false,
      records: [{ id: 4 }, { id: 5 }, { id: 6 }, { id: 7 }],
    });
  });

  it('reads at most some mebibytes at once, however large the records are, and at least one', () => {
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

  it('tells due retries, overdue ones and when the next are', async () => {
    const clock = new ManualClock();
    const { rows } = openRows(clock, { window_ms: 60_000 });
    append(rows, '{}', '{}', '{}');
    const now_ms = rows.now();
    settle(rows, 2, { state: 'pending', due_ms: now_ms + 500, probe_ms: now_ms + 100 });
    settle(rows, 3, { state: 'pending', due_ms: now_ms + 2_000, probe_ms: now_ms + 50 });
    expect(rows.backlog.due(10)).toEqual({ records: [], next_due_ms: now_ms + 500 });
    expect(rows.backlog.probeCandidate([])?.id).toBe(3);
    expect(rows.backlog.probeCandidate([3])?.id).toBe(2);
    expect(rows.backlog.probeCandidate([3, 2])).toBeNull();
    await clock.advance(500);
    expect(rows.backlog.due(10)).toMatchObject({
      records: [{ id: 2, attempts: 1, failures: 1 }],
      next_due_ms: now_ms + 2_000,
    });
    expect(rows.backlog.overdue(10)).toEqual({ records: [], next_deadline_ms: now_ms + 60_000 });
    await clock.advance(60_000);
    expect(
      rows.backlog
        .overdue(10)
        .records.map(({ id }) => id)
        .toSorted(),
    ).toEqual([2, 3]);
    expect(rows.backlog.untried(0, 10).records.map(({ id }) => id)).toEqual([1]);
  });
});
