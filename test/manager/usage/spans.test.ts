import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hourlySpans, startOfHour } from '../../../src/manager/usage/spans.ts';

const HOUR_MS = 3_600_000;
const time = fc.nat(20 * HOUR_MS).map((ms) => Date.UTC(2026, 0, 1) + ms);

describe('hourly spans', () => {
  it('cover a stretch once, without gaps, and none reaches over a full hour', () => {
    fc.assert(
      fc.property(time, time, (a, b) => {
        const [start_ms, end_ms] = [Math.min(a, b), Math.max(a, b)];
        const spans = hourlySpans(start_ms, end_ms);
        let at_ms = start_ms;
        for (const span of spans) {
          expect(span.start_ms).toBe(at_ms);
          expect(span.end_ms).toBeGreaterThan(span.start_ms);
          expect(startOfHour(span.end_ms - 1)).toBe(startOfHour(span.start_ms));
          at_ms = span.end_ms;
        }
        expect(at_ms).toBe(end_ms);
      }),
    );
  });

  it('are none where a clock went back', () => {
    expect(hourlySpans(5, 5)).toEqual([]);
    expect(hourlySpans(5, 4)).toEqual([]);
  });
});
