import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  badOption,
  choiceOption,
  FILLED_OPTION,
  integerOption,
  OptionValues,
  SWITCH_OPTION,
} from '../../src/base/options.ts';

describe('an integer', () => {
  it('is every integer within its bounds, and nothing else', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), fc.maxSafeNat(), fc.maxSafeNat(), (a, b, value) => {
        const [min, max] = [Math.min(a, b), Math.max(a, b)];
        const expected = value >= min && value <= max ? value : null;
        expect(integerOption(min, max).parse(String(value))).toBe(expected);
        expect(integerOption(min).parse(String(value))).toBe(value >= min ? value : null);
      }),
    );
  });

  it.each([
    '',
    ' 1',
    '1 ',
    '-1',
    '+1',
    '1.0',
    '1e3',
    '0x10',
    '80x',
    '９',
    '9007199254740992',
    '1'.repeat(400),
  ])('is not %j', (text) => {
    expect(integerOption(0).parse(text)).toBeNull();
  });

  it('tells its bounds', () => {
    expect(integerOption(1, 9).accepted).toBe('must be an integer from 1 to 9');
    expect(integerOption(1).accepted).toBe('must be an integer of at least 1');
  });
});

describe('a choice', () => {
  it('is one of its values, to the letter', () => {
    const { parse, accepted } = choiceOption(['on', 'off']);
    expect(['on', 'off', 'ON', 'o', '', 'constructor'].map(parse)).toEqual([
      'on',
      'off',
      null,
      null,
      null,
      null,
    ]);
    expect(accepted).toBe('must be one of on, off');
  });
});

describe('a switch', () => {
  it.each<[string, boolean | null]>([
    ...['1', 'true', 'YES', 'On'].map((word): [string, boolean] => [word, true]),
    ...['0', 'false', 'No', 'OFF'].map((word): [string, boolean] => [word, false]),
    ...['', 'maybe', 'true ', '2', 'onn'].map((word): [string, null] => [word, null]),
  ])('in the word %j is %j', (word, expected) => {
    expect(SWITCH_OPTION.parse(word)).toBe(expected);
  });
});

it('a text may be anything but empty', () => {
  expect(['', ' ', 'a'].map(FILLED_OPTION.parse)).toEqual([null, ' ', 'a']);
});

describe('the values of several sources', () => {
  it('are those of the first source that has them', () => {
    const values = new OptionValues({ a: '1' }, { a: '2', b: '3' }, { a: '4', b: '5', c: 6 });
    expect(['a', 'b', 'c', 'd'].map((name) => values.optional(name, integerOption(0)))).toEqual([
      1,
      3,
      6,
      null,
    ]);
    expect(values.read('d', '7', integerOption(0))).toBe(7);
  });

  it('are a list, a text with commas or spaces, or nothing', () => {
    const values = new OptionValues({ list: ['1', 2], text: '1, 2\n3', none: null, one: '4' });
    expect(
      ['list', 'text', 'none', 'one', 'absent'].map((name) => values.list(name, integerOption(0))),
    ).toEqual([[1, 2], [1, 2, 3], [], [4], []]);
  });

  it.each<[string, (values: OptionValues<string>) => unknown]>([
    [
      '--a-number must be an integer from 1 to 5',
      (values) => values.read('a_number', '1', integerOption(1, 5)),
    ],
    [
      '--a-number must be an integer from 1 to 5',
      (values) => values.optional('a_number', integerOption(1, 5)),
    ],
    ['--a-list must be a single value', (values) => values.read('a_list', '1', integerOption(1))],
    ['--an-object must be true or false', (values) => values.list('an_object', SWITCH_OPTION)],
    ['--a-list must be true or false', (values) => values.list('a_list', SWITCH_OPTION)],
  ])('are refused by name, with what is accepted: %s', (message, read) => {
    const values = new OptionValues({ a_number: '6', a_list: ['1', '2'], an_object: { a: 1 } });
    expect(() => read(values)).toThrow(message);
    expect(() => read(values)).toThrow(expect.objectContaining({ exit_code: 2 }));
  });
});

it('an error names the flag of an option', () => {
  expect(badOption('node_memory', 'must be a size')).toMatchObject({
    message: '--node-memory must be a size',
    exit_code: 2,
  });
});
