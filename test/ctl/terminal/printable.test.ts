import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cut, printable, width } from '../../../src/ctl/terminal/printable.ts';

describe('printable text', () => {
  it('is left alone, whatever its language', () => {
    expect(printable('Grüße, 世界 🌍')).toBe('Grüße, 世界 🌍');
  });

  it('is one line', () => {
    expect(printable('a\nb\r\nc\td')).toBe('a b  c d');
  });

  it('shows what a terminal would obey', () => {
    expect(printable('\u001b[31mred\u0007\u009b\u202e')).toBe('\\u001b[31mred\\u0007\\u009b\\u202e');
  });

  it('never holds a control character', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(printable(text)).not.toMatch(/\p{Cc}/u);
      }),
    );
  });
});

describe('cut text', () => {
  it('stays whole where it fits', () => {
    expect(cut('abc', 3)).toBe('abc');
  });

  it('ends in an ellipsis where it does not fit', () => {
    expect(cut('abcd', 3)).toBe('ab…');
    expect(cut('世界世界', 6)).toBe('世界…');
  });

  it('keeps what a reader takes for one character whole', () => {
    expect(cut('👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦', 5)).toBe('👩‍👩‍👧‍👦👩‍👩‍👧‍👦…');
    expect(width('🇫🇷')).toBe(2);
    expect(width('e\u0301')).toBe(1);
  });

  it('is found without reading the rest of a long text', () => {
    const long = '世'.repeat(10_000_000);
    expect(cut(long, 5)).toBe('世世…');
  });

  it('is never wider than asked', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.nat(40), (text, columns) => {
        expect(width(cut(text, columns))).toBeLessThanOrEqual(columns);
      }),
    );
  });
});
