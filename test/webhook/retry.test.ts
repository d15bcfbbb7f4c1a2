import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AttemptError } from '../../src/contract/words.ts';
import {
  type AttemptResult,
  type AttemptTimes,
  decide as decideAs,
  endpointBackoffMs,
  endpointVerdict,
  retryAfterMs,
  type Verdict,
} from '../../src/webhook/retry.ts';

interface Row {
  status?: number;
  error?: AttemptError;
  decision: 'delivered' | 'failed' | 'retry';
  endpoint: Verdict;
}

const rows: Row[] = JSON.parse(
  readFileSync(new URL('../../fixtures/responses.json', import.meta.url), 'utf8'),
);
const retried = rows.filter(({ decision }) => decision === 'retry');

/** With the classes of the specification. */
const decide = (...given: [AttemptResult, AttemptTimes, number, number, number]) =>
  decideAs(...given, 'transient');

const HOUR_MS = 60 * 60 * 1000;
/** The middle of the jitter. */
const MIDDLE = 0.5;

function result({ status, error }: Row): AttemptResult {
  return {
    status: status ?? null,
    error: error ?? null,
    retry_after: null,
    error_detail: null,
    response_body: null,
  };
}

const times = (ended_ms: number, deadline_ms: number) => ({
  started_ms: ended_ms - 10,
  ended_ms,
  deadline_ms,
});
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

describe.each(rows)('$status$error', (row) => {
  it(`means ${row.decision}`, () => {
    const { state } = decide(result(row), times(1_000, HOUR_MS), 1, 0, MIDDLE);
    expect(state).toBe(row.decision === 'retry' ? 'pending' : row.decision);
  });

  it(`says of the endpoint: ${row.endpoint}`, () => {
    expect(endpointVerdict(result(row))).toBe(row.endpoint);
  });

  it('at the last attempt ends the record', () => {
    const last = { started_ms: HOUR_MS, ended_ms: HOUR_MS + 10, deadline_ms: HOUR_MS };
    const { state } = decide(result(row), last, 9, 3_000, MIDDLE);
    expect(state).toBe(row.decision === 'retry' ? 'expired' : row.decision);
  });
});

describe('with every status tried again', () => {
  it.each(rows)('$status$error is final only if it is a success or 410', (row) => {
    const { state } = decideAs(result(row), times(1_000, HOUR_MS), 1, 0, MIDDLE, 'any');
    const is_final = row.decision === 'delivered' || row.status === 410;
    expect(state).toBe(is_final ? row.decision : 'pending');
  });
});

describe('a retry', () => {
  it('is due 500 ms × 2ⁿ⁻¹ after the end of the n-th failed attempt, capped at 5 min, ± 20 %', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...retried),
        fc.integer({ min: 1, max: 2_000 }),
        random,
        fc.integer({ min: 0, max: 2 ** 42 }),
        (row, failures, chance, ended_ms) => {
          const decision = decide(result(row), times(ended_ms, ended_ms + 24 * HOUR_MS), failures, 0, chance);
          const middle_ms = Math.min(500 * 2 ** (failures - 1), 300_000);
          expect(decision.state).toBe('pending');
          if (decision.state !== 'pending') return;
          const wait_ms = decision.due_ms - ended_ms;
          expect(wait_ms).toBeGreaterThanOrEqual(Math.floor(middle_ms * 0.8));
          expect(wait_ms).toBeLessThanOrEqual(Math.ceil(middle_ms * 1.2));
        },
      ),
    );
  });

  it('reaches both ends of its jitter', () => {
    const at = (chance: number) =>
      decide(result({ status: 500, decision: 'retry', endpoint: 'down' }), times(0, HOUR_MS), 3, 0, chance);
    expect(at(0)).toMatchObject({ due_ms: 1_600 });
    expect(at(MIDDLE)).toMatchObject({ due_ms: 2_000 });
    expect(at(0.999_999)).toMatchObject({ due_ms: 2_400 });
  });

  it('waits as long as the receiver asked where that is longer, up to an hour and never past the window', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 0, max: 1e12 }),
        fc.integer({ min: 1, max: 24 * HOUR_MS }),
        random,
        (failures, asked_ms, left_ms, chance) => {
          const row: Row = { status: 503, decision: 'retry', endpoint: 'down' };
          const without = decide(result(row), times(0, Number.MAX_SAFE_INTEGER), failures, 0, chance);
          const decision = decide(result(row), times(0, left_ms), failures, asked_ms, chance);
          if (decision.state !== 'pending' || without.state !== 'pending') throw new Error('must be pending');
          const longer_ms = Math.max(without.due_ms, Math.min(asked_ms, HOUR_MS));
          expect(decision.due_ms).toBe(Math.min(longer_ms, left_ms));
          expect(decision.probe_ms).toBeLessThanOrEqual(decision.due_ms);
        },
      ),
    );
  });

  it('may be the probe after at most 30 s of its own backoff, but not before what was asked for', () => {
    const row: Row = { status: 503, decision: 'retry', endpoint: 'down' };
    const decision = (asked_ms: number) => decide(result(row), times(0, 24 * HOUR_MS), 12, asked_ms, MIDDLE);
    expect(decision(0)).toEqual({ state: 'pending', due_ms: 300_000, probe_ms: 30_000 });
    expect(decision(90_000)).toEqual({ state: 'pending', due_ms: 300_000, probe_ms: 90_000 });
    expect(decision(600_000)).toEqual({ state: 'pending', due_ms: 600_000, probe_ms: 600_000 });
  });

  it('is due at once as the last attempt where the window ended during the attempt', () => {
    const row: Row = { error: 'timeout', decision: 'retry', endpoint: 'down' };
    const during = { started_ms: 990, ended_ms: 1_500, deadline_ms: 1_000 };
    expect(decide(result(row), during, 1, 0, MIDDLE)).toMatchObject({ state: 'pending', due_ms: 1_000 });
  });
});

describe("the endpoint's backoff", () => {
  it('doubles from 500 ms, ± 20 %, and is at most 30 s', () => {
    expect([0, 1, 2, 3, 4, 5, 6, 7, 1_000].map((n) => endpointBackoffMs(n, MIDDLE))).toEqual([
      500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000,
    ]);
    fc.assert(
      fc.property(fc.nat(5_000), random, (failed_probes, chance) => {
        const middle_ms = 500 * 2 ** Math.min(failed_probes, 20);
        const wait_ms = endpointBackoffMs(failed_probes, chance);
        expect(wait_ms).toBeGreaterThanOrEqual(Math.min(30_000, Math.floor(middle_ms * 0.8)));
        expect(wait_ms).toBeLessThanOrEqual(Math.min(30_000, Math.ceil(middle_ms * 1.2)));
      }),
    );
  });
});

describe('Retry-After', () => {
  const wall_ms = Date.UTC(2026, 6, 1, 12, 0, 0);

  it.each([
    [null, 0],
    ['', 0],
    ['0', 0],
    ['120', 120_000],
    [' 7 ', 7_000],
    ['-5', 0],
    ['+5', 0],
    ['1.5', 0],
    ['1e3', 0],
    ['0x10', 0],
    ['soon', 0],
    ['2026-07-01T12:00:30Z', 0],
    ['Wed, 01 Jul 2026 12:00:30 GMT', 30_000],
    ['Wednesday, 01-Jul-26 12:00:30 GMT', 30_000],
    ['Wed Jul  1 12:00:30 2026', 30_000],
    ['Wed, 01 Jul 2026 11:59:00 GMT', 0],
    ['Wed, 99 Jul 2026 12:00:30 GMT', 0],
  ])('%j asks for %i ms', (value, expected_ms) => {
    expect(retryAfterMs(value, wall_ms)).toBe(expected_ms);
  });

  it('never asks for anything but a number of milliseconds from 0, whatever it holds', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^\d{1,400}$/)), (value) => {
        expect(retryAfterMs(value, wall_ms)).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});
