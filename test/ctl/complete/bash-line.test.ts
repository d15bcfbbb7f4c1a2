import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bashReplacement, readBashLine } from '../../../src/ctl/complete/bash-line.ts';

const BREAKS = ' \t\n"\'@><=;|&(:';
/** All that a name in a sandbox may hold but what a terminal would act upon. */
const name = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 12 })
  .filter((text) => !/[\p{Cc}\p{Cs}/]/u.test(text));
const nasty = fc
  .array(
    fc.constantFrom(
      ' ',
      "'",
      '"',
      '$(id)',
      '`id`',
      ';',
      '&',
      '|',
      '>',
      '*',
      '?',
      '[a]',
      '{a,b}',
      '~',
      '#',
      '!',
      '\\',
      ':',
      '=',
      '@',
      'é',
      'x',
    ),
    {
      minLength: 1,
      maxLength: 6,
    },
  )
  .map((parts) => parts.join(''));

/** What bash makes of words. */
function evaluated(words: string[]): string[] {
  const script = `printf '%s\\0' ${words.join(' ')}`;
  const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', script], { encoding: 'utf8' });
  expect(stderr).toBe('');
  return stdout.split('\0').slice(0, -1);
}

describe('a word that is completed in bash', () => {
  it('is the very name for bash, whatever it holds and wherever it was cut', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.oneof(name, nasty), fc.nat(100)), { minLength: 1, maxLength: 40 }),
        (cases) => {
          const whole = { words: [], quote: '', kept: 0 } as const;
          const inserted = cases.map(([text, share]) => {
            const word = `:/d/${text}`;
            const characters = Array.from(word);
            const typed = characters
              .slice(0, 4 + Math.floor((share * (characters.length - 4)) / 100))
              .join('');
            const raw = bashReplacement(typed, { ...whole, words: [] }) as string;
            const line = readBashLine(`sandboxctl cat ${raw}`, BREAKS);
            expect(line?.words).toEqual(['sandboxctl', 'cat', typed]);
            const kept = raw.slice(0, keptOf(raw));
            return kept + bashReplacement(word, line as NonNullable<typeof line>);
          });
          expect(evaluated(inserted)).toEqual(cases.map(([text]) => `:/d/${text}`));
        },
      ),
      { numRuns: 30 },
    );
  });

  it('goes on in quotes that are open, where that is possible', () => {
    const line = readBashLine("sandboxctl cat ':/my fi", BREAKS);
    expect(line).toEqual({ words: ['sandboxctl', 'cat', ':/my fi'], quote: "'", kept: 0 });
    expect(bashReplacement(':/my file', line as NonNullable<typeof line>)).toBe(':/my file');
    expect(bashReplacement(":/my fi's", line as NonNullable<typeof line>)).toBeNull();
  });

  it.each(['cat $HOME/', 'cat `id`/', "cat ':/a'b", 'cat a"b', 'cat /*', 'cat "$x', 'cat ~/a', 'cat {a,'])(
    'is none where bash would make something else of it: %s',
    (typed) => {
      expect(readBashLine(`sandboxctl ${typed}`, BREAKS)).toBeNull();
    },
  );

  it('comes after words whose quotes are gone, and may be empty', () => {
    expect(readBashLine(`sandboxctl --token-file "a b" 'c' d\\ e  `, BREAKS)?.words).toEqual([
      ...['sandboxctl', '--token-file', 'a b', 'c', 'd e', ''],
    ]);
  });
});

/** Where bash replaces a word without quotes: after its last break that no backslash protects. */
function keptOf(raw: string): number {
  let kept = 0;
  for (let i = 0; i < raw.length; i++) {
    if (raw[i] === '\\') i++;
    else if (BREAKS.includes(raw[i] as string)) kept = i + 1;
  }
  return kept;
}
