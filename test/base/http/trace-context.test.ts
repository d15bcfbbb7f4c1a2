import { parseTraceParent } from '@opentelemetry/core';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { traceOf, traceparentOf } from '../../../src/base/http/trace-context.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';

const hex = (length: number, digits = '0123456789abcdef') =>
  fc.string({ unit: fc.constantFrom(...digits), minLength: length, maxLength: length });

/** Mostly right: each part is now and then what it must not be. */
const almost = fc
  .tuple(
    fc.oneof(fc.constantFrom('00', '01', 'cc', 'ff'), hex(2), hex(2, '0aF')),
    fc.oneof({ weight: 4, arbitrary: hex(32) }, fc.constant('0'.repeat(32)), hex(31), hex(32, 'aA')),
    fc.oneof({ weight: 4, arbitrary: hex(16) }, fc.constant('0'.repeat(16)), hex(17), hex(16, 'gf')),
    fc.oneof({ weight: 4, arbitrary: hex(2) }, hex(1), hex(3), fc.constant('.1')),
    fc.oneof(
      { weight: 4, arbitrary: fc.constant('') },
      fc.constantFrom('-', '-what-the-future-brings', '.', '-é', 'a', ', 00', '-x, 00', '\n', ' '),
    ),
  )
  .map(([version, trace, parent, flags, rest]) => `${version}-${trace}-${parent}-${flags}${rest}`);

describe('a traceparent', () => {
  it('goes on exactly where OpenTelemetry reads one, and says the same to it', () => {
    fc.assert(
      fc.property(fc.oneof(almost, fc.string()), (value) => {
        const passed_on = traceparentOf(value);
        const read = parseTraceParent(value);
        // OpenTelemetry also takes spaces around it, which HTTP has removed, and anything behind a dash: also a second one.
        if (passed_on === undefined) {
          expect(read === null || /^\s|\s$|,/.test(value)).toBe(true);
          return;
        }
        const { traceId, spanId } = read ?? {};
        expect(parseTraceParent(passed_on)).toMatchObject({ traceId, spanId });
        expect((parseTraceParent(passed_on)?.traceFlags ?? 0) & 1).toBe((read?.traceFlags ?? 0) & 1);
      }),
      { numRuns: 3_000 },
    );
  });

  it('of version 00 stays as it is, unknown flags included', () => {
    fc.assert(
      fc.property(hex(32), hex(16), hex(2), (trace, parent, flags) => {
        const value = `00-${trace}-${parent}-${flags}`;
        const is_valid = /[^0]/.test(trace) && /[^0]/.test(parent);
        expect(traceparentOf(value)).toBe(is_valid ? value : undefined);
        expect(traceOf({ traceparent: value })).toEqual(is_valid ? { trace_id: trace } : {});
      }),
    );
  });

  it.each([
    [`cc-${TRACE}-${PARENT}-ff-what-the-future-brings`, `00-${TRACE}-${PARENT}-01`],
    [`cc-${TRACE}-${PARENT}-fe`, `00-${TRACE}-${PARENT}-00`],
    [`00-${TRACE}-${PARENT}-01-more`, undefined],
    [`00-${TRACE}-${PARENT}-01, 00-${TRACE}-${PARENT}-01`, undefined],
    [`cc-${TRACE}-${PARENT}-01-x, cc-${TRACE}-${PARENT}-01`, undefined],
    [`ff-${TRACE}-${PARENT}-01`, undefined],
    [`00-${TRACE.toUpperCase()}-${PARENT}-01`, undefined],
    [`00-${TRACE}-${PARENT}-01\n`, undefined],
    ['', undefined],
    [undefined, undefined],
  ])('%s goes on as %s', (value, passed_on) => {
    expect(traceparentOf(value)).toBe(passed_on);
  });
});
