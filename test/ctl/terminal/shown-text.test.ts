import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ShownText } from '../../../src/ctl/terminal/shown-text.ts';
import { pipe, screen } from '../../support/ctl/screen.ts';

const ESCAPE = '\u001b';
const KEPT = new RegExp(`${ESCAPE}\\[[\\d;:]*m|\\r?\\n|\\t`, 'g');

function shown(...pieces: (string | Buffer)[]): string {
  const text = new ShownText();
  return pieces.map((piece) => text.add(Buffer.from(piece))).join('') + text.end();
}

describe('text that a terminal gets', () => {
  it.each([
    ['Grüße\tand\nlines\r\n', 'Grüße\tand\nlines\r\n'],
    ['\u001b[1;38:5:9mred\u001b[0m', '\u001b[1;38:5:9mred\u001b[0m'],
    ['\u001b[31mleft on', '\u001b[31mleft on\u001b[0m'],
    ['\u001b]0;title\u0007', '\\u001b]0;title\\u0007'],
    ['\u001b[2J\u001b[8;1H\u001b[?1049h', '\\u001b[2J\\u001b[8;1H\\u001b[?1049h'],
    ['\u009b31m \u202e \u0008', '\\u009b31m \\u202e \\u0008'],
    ['99 %\rover', '99 %\\u000dover'],
    [`\u001b[${'1;'.repeat(40)}m`, `\\u001b[${'1;'.repeat(40)}m`],
    ['ends in \u001b', 'ends in \\u001b'],
    ['ends in \u001b[3', 'ends in \\u001b[3'],
    ['ends in \r', 'ends in \\u000d'],
  ])('is %j as %j', (text, expected) => {
    expect(shown(text)).toBe(expected);
  });

  it('is the same wherever its bytes are cut', () => {
    const part = fc.constantFrom(
      '\u001b',
      '[',
      '31',
      ';',
      'm',
      '\r',
      '\n',
      'ü',
      '🌍',
      '\u009b',
      ']0;t\u0007',
    );
    fc.assert(
      fc.property(fc.array(part), fc.array(fc.nat(40)), (parts, cuts) => {
        const bytes = Buffer.from(parts.join(''));
        const at = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
        const pieces = at.slice(1).map((end, i) => bytes.subarray(at[i], end));
        expect(shown(...pieces)).toBe(shown(bytes));
      }),
    );
  });

  it('holds no control character but those of its lines and colours', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const text = shown(Buffer.from(bytes)).replaceAll(KEPT, '');
        expect(text).not.toMatch(/\p{Cc}/u);
      }),
    );
  });
});

describe('content', () => {
  it.each([
    [false, '\\u0007\u001b[31mx\u001b[0m'],
    [true, '\u0007\u001b[31mx'],
  ])('on a terminal, raw: %s', async (is_raw, expected) => {
    const { out, text } = screen(80);
    const content = out.content(is_raw);
    await content.write(Buffer.from('\u0007\u001b[31mx'));
    await content.end();
    expect(text()).toBe(expected);
  });

  it('in a pipe is as it came', async () => {
    const { out, text } = pipe();
    const content = out.content(false);
    await content.write(Buffer.from('\u0007\u001b'));
    await content.end();
    expect(text()).toBe('\u0007\u001b');
  });
});
