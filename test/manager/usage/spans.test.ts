import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { byteSpans, hourlySpans, startOfHour } from '../../../src/manager/usage/spans.ts';

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

const AT = Date.UTC(2026, 0, 1, 10);
const at = (hours: number) => AT + hours * HOUR_MS;

it('bytes belong to the hour in which they were first seen, and hours without bytes have no window', () => {
  const counted = { value: 100, at_ms: at(0.25) };
  const seen = { value: 130, at_ms: at(0.9) };
  expect(byteSpans(counted, seen, { value: 200, at_ms: at(3) })).toEqual([
    { start_ms: at(0.25), end_ms: at(1), value: 30 },
    { start_ms: at(2), end_ms: at(3), value: 70 },
  ]);
  expect(byteSpans(counted, counted, { value: 100, at_ms: at(3) })).toEqual([]);
});

it('no byte is lost or counted twice whatever the clock did, and each window lies within an hour', () => {
  const time = fc.integer({ min: at(0), max: at(5) });
  const bytes = fc.nat({ max: 1_000 });
  fc.assert(
    fc.property(time, time, time, bytes, bytes, (from_ms, seen_ms, until_ms, before, after) => {
      const spans = byteSpans(
        { value: 7, at_ms: from_ms },
        { value: 7 + before, at_ms: seen_ms },
        { value: 7 + before + after, at_ms: until_ms },
      );
      expect(spans.reduce((sum, { value }) => sum + value, 0)).toBe(before + after);
      for (const { start_ms, end_ms, value } of spans) {
        expect(value).toBeGreaterThan(0);
        expect(end_ms).toBeGreaterThan(start_ms);
        expect(startOfHour(start_ms)).toBe(startOfHour(end_ms - 1));
      }
    }),
  );
});
