import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  checkConditions,
  checkUnconditional,
  httpDate,
  isRangeCurrent,
  readOutcome,
  writeConditions,
} from '../../src/files/conditions.ts';

const MODIFIED_MS = Date.UTC(1994, 10, 6, 8, 49, 37);
const VERSION = { etag: '"now"', modified_ms: MODIFIED_MS + 400 };
const NOW_MS = MODIFIED_MS + 1_000_000;
const EARLIER = new Date(MODIFIED_MS - 1_000).toUTCString();
const SAME = new Date(MODIFIED_MS).toUTCString();
const FUTURE = new Date(NOW_MS + 1_000).toUTCString();

const read = (headers: Record<string, string>) => readOutcome(headers, VERSION, NOW_MS);
const write = (headers: Record<string, string>, version: typeof VERSION | null = VERSION) => {
  try {
    checkConditions(writeConditions(headers), version);
    return 'written';
  } catch (error) {
    return (error as { code: string }).code;
  }
};

describe('a download', () => {
  const cases: [headers: Record<string, string>, outcome: string][] = [
    [{}, 'send'],
    [{ 'if-match': '"a", "now"' }, 'send'],
    [{ 'if-match': '*' }, 'send'],
    [{ 'if-match': '"a"' }, 'failed'],
    [{ 'if-match': 'W/"now"' }, 'failed'],
    [{ 'if-match': 'now' }, 'failed'],
    [{ 'if-none-match': '"a",W/"now"' }, 'not_modified'],
    [{ 'if-none-match': '*' }, 'not_modified'],
    [{ 'if-none-match': '"W/"' }, 'send'],
    [{ 'if-modified-since': SAME }, 'not_modified'],
    [{ 'if-modified-since': EARLIER }, 'send'],
    [{ 'if-modified-since': FUTURE }, 'send'],
    [{ 'if-modified-since': '1995' }, 'send'],
    [{ 'if-unmodified-since': SAME }, 'send'],
    [{ 'if-unmodified-since': FUTURE }, 'send'],
    [{ 'if-unmodified-since': EARLIER }, 'failed'],
    [{ 'if-unmodified-since': '1990' }, 'send'],
    // What comes first in section 13.2.2 decides.
    [{ 'if-match': '"now"', 'if-unmodified-since': EARLIER }, 'send'],
    [{ 'if-match': '"a"', 'if-none-match': '"now"' }, 'failed'],
    [{ 'if-unmodified-since': EARLIER, 'if-none-match': '"now"' }, 'failed'],
    [{ 'if-none-match': '"a"', 'if-modified-since': SAME }, 'send'],
    [{ 'if-match': '"now"', 'if-none-match': '"now"' }, 'not_modified'],
  ];
  it.each(cases)('with %j is %s', (headers, outcome) => {
    expect(read(headers)).toBe(outcome);
  });

  it('has a range with the very tag alone, never with a weak one or a date', () => {
    const given = [undefined, '"now"', 'W/"now"', '"a"', '"now", "a"', SAME, FUTURE];
    expect(given.map((if_range) => isRangeCurrent(if_range, VERSION))).toEqual([
      true,
      true,
      false,
      false,
      false,
      false,
      false,
    ]);
  });
});

describe('an upload', () => {
  it('is written only where the conditions hold', () => {
    expect(write({ 'if-match': '"a", "now"' })).toBe('written');
    expect(write({ 'if-match': 'W/"now"' })).toBe('precondition_failed');
    expect(write({ 'if-match': '*' }, null)).toBe('precondition_failed');
    expect(write({ 'if-none-match': ' * ' })).toBe('precondition_failed');
    expect(write({ 'if-none-match': '*' }, null)).toBe('written');
    expect(write({ 'if-none-match': '"now"' })).toBe('invalid_request');
    expect(write({ 'if-unmodified-since': EARLIER })).toBe('precondition_failed');
    expect(write({ 'if-unmodified-since': SAME })).toBe('written');
    expect(write({ 'if-unmodified-since': EARLIER }, null)).toBe('written');
    expect(write({ 'if-unmodified-since': EARLIER, 'if-match': '"now"' })).toBe('written');
    expect(write({ 'if-modified-since': FUTURE })).toBe('written');
  });

  it('is alone in having conditions that change nothing where they fail', () => {
    const refused = (headers: Record<string, string>) => {
      try {
        checkUnconditional(headers);
      } catch (error) {
        return (error as { field: string }).field;
      }
    };
    expect(refused({ 'if-match': '*' })).toBe('If-Match');
    expect(refused({ 'if-unmodified-since': SAME })).toBe('If-Unmodified-Since');
    expect(refused({ 'if-modified-since': SAME, 'if-range': '"now"' })).toBe(undefined);
  });
});

describe('an HTTP date', () => {
  it('has three forms and no other', () => {
    for (const text of [
      'Sun, 06 Nov 1994 08:49:37 GMT',
      'Sunday, 06-Nov-94 08:49:37 GMT',
      'Sun Nov  6 08:49:37 1994',
    ])
      expect([text, httpDate(text)]).toEqual([text, MODIFIED_MS]);
    for (const text of [
      '',
      '0',
      '1994',
      '1994-11-06T08:49:37Z',
      'Sun, 06 Nov 1994 08:49:37 +0000',
      'Sun, 06 Nov 1994 99:49:37 GMT',
    ])
      expect([text, httpDate(text)]).toEqual([text, null]);
  });

  it('is read as it is written', () => {
    const seconds = fc.integer({ min: 0, max: 253_402_300_799 });
    fc.assert(
      fc.property(seconds, (time_s) => {
        expect(httpDate(new Date(time_s * 1_000).toUTCString())).toBe(time_s * 1_000);
      }),
    );
  });
});
