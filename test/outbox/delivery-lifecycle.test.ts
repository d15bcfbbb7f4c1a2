import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { attemptRow, outcomeChange, replayChange } from '../../src/outbox/delivery-lifecycle.ts';
import type { AttemptOutcome } from '../../src/outbox/store.ts';
import type { Decision } from '../../src/webhook/retry.ts';

const time = fc.double({ min: 0, max: 4e12, noNaN: true });
const decision: fc.Arbitrary<Decision> = fc.oneof(
  fc.record({ state: fc.constantFrom('delivered' as const, 'failed' as const, 'expired' as const) }),
  fc.record({ state: fc.constant('pending' as const), due_ms: time, probe_ms: time }),
);

describe('what an outcome changes', () => {
  it('is due exactly while the record is pending, and finished exactly while it is not', () => {
    fc.assert(
      fc.property(decision, fc.nat(), (decided, now_ms) => {
        const change = outcomeChange(decided, now_ms);
        const is_pending = change.state === 'pending';
        expect(change.state).toBe(decided.state);
        expect([change.due_ms !== null, change.probe_ms !== null]).toEqual([is_pending, is_pending]);
        expect(change.finished_ms).toBe(is_pending ? null : now_ms);
      }),
    );
  });

  it('is in whole ms, and never 0: that is for records that were never tried', () => {
    fc.assert(
      fc.property(time, time, (due_ms, probe_ms) => {
        const change = outcomeChange({ state: 'pending', due_ms, probe_ms }, 0);
        for (const [stored, decided] of [
          [change.due_ms, due_ms],
          [change.probe_ms, probe_ms],
        ]) {
          expect(Number.isSafeInteger(stored)).toBe(true);
          expect(stored).toBeGreaterThanOrEqual(1);
          expect(Math.abs((stored as number) - (decided as number))).toBeLessThanOrEqual(1);
        }
      }),
    );
  });
});

it('a replay makes a record due at once, with a new window and no failures in it', () => {
  expect(replayChange(5_000, 1_000)).toEqual({
    failures: 0,
    due_ms: 5_000,
    probe_ms: 5_000,
    deadline_ms: 6_000,
  });
});

describe('the line of an attempt', () => {
  const outcome = (decided: Decision): AttemptOutcome => ({
    id: 7,
    attempt: 2,
    started_at_ms: 1_000.4,
    duration_ms: 12.6,
    status: 503,
    error: null,
    error_detail: null,
    response_body: 'busy',
    decision: decided,
  });

  it('is in whole ms of wall time', () => {
    expect(attemptRow(outcome({ state: 'pending', due_ms: 50.5, probe_ms: 1 }), 900)).toEqual({
      attempt: 2,
      started_at_ms: 1_000,
      duration_ms: 13,
      status: 503,
      error: null,
      next_attempt_at_ms: 951,
      error_detail: null,
      response_body: 'busy',
    });
  });

  it('tells of no next attempt where there is none', () => {
    expect(attemptRow(outcome({ state: 'failed' }), 900).next_attempt_at_ms).toBeNull();
  });
});
