import fc from 'fast-check';
import { expect, it } from 'vitest';
import { LINES_MAX, OutputLog } from '../../../src/console/processes/output-log.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

it('lines come out the same however their bytes are cut', () => {
  const texts = fc.array(fc.string({ unit: fc.constantFrom('a', 'é', '😀', ' ', '\n') }), { maxLength: 20 });
  fc.assert(
    fc.property(texts, fc.nat(6), (lines, size) => {
      const all = bytes(lines.join('\n'));
      const log = new OutputLog();
      for (let at = 0; at < all.length; at += size + 1) log.add('stdout', all.subarray(at, at + size + 1));
      const shown = log.lines().map(({ text }) => text);
      const wanted = lines.join('\n').split('\n');
      if (wanted.at(-1) === '') wanted.pop();
      expect(shown).toEqual(wanted);
    }),
  );
});

it('what a terminal would carry out is left out, and what was written over is gone', () => {
  const log = new OutputLog();
  log.add(
    'stdout',
    bytes(
      '\u001b[31mred\u001b[0m\r\n10%\r20%\n\u001b]0;title\u0007\u001b]8;;http://x\u0007text\u001b]8;;\u0007\n',
    ),
  );
  log.add('stderr', bytes('a\u0000b\n'));
  expect(log.lines().map(({ stream, text }) => `${stream} ${text}`)).toEqual([
    'stdout red',
    'stdout 20%',
    'stdout text',
    'stderr a\\u0000b',
  ]);
});

it('the newest lines are kept under their numbers, and the number of dropped ones is known', () => {
  const log = new OutputLog();
  const count = LINES_MAX * 1.2;
  log.add('stdout', bytes('x\n'.repeat(count)));
  log.add('stdout', bytes('last\n'));
  const lines = log.lines();
  expect(lines.length + log.dropped).toBe(count + 1);
  expect(lines.at(-1)).toEqual({ number: count, stream: 'stdout', text: 'last' });
  expect(lines.length).toBeLessThanOrEqual(LINES_MAX * 1.1 + 1);
});
