import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  badOption,
  choiceOption,
  FILLED_OPTION,
  integerOption,
  type OptionRow,
  type OptionType,
  readOptions,
  SWITCH_OPTION,
  TEXT_OPTION,
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

/** A row of a table of options. */
const row = (name: string, type: OptionType<unknown>, more: Partial<OptionRow> = {}): OptionRow => ({
  name,
  value: 'value',
  description: '',
  type,
  ...more,
});

describe('the values of several sources', () => {
  it('are those of the first source that has them', () => {
    const rows = ['a', 'b', 'c', 'd'].map((name) => row(name, integerOption(0)));
    const sources = [{ a: '1' }, { a: '2', b: '3' }, { a: '4', b: '5', c: 6 }];
    expect(readOptions(rows, ...sources)).toEqual({ a: 1, b: 3, c: 6, d: null });
    const standing = row('d', integerOption(0), { standard: '7' });
    expect(readOptions([standing], ...sources)).toEqual({ d: 7 });
  });

  it('are a list, a text with commas or spaces, or nothing', () => {
    const names = ['list', 'text', 'none', 'one', 'absent'];
    const rows = names.map((name) => row(name, integerOption(0), { is_list: true }));
    const given = { list: ['1', 2], text: '1, 2\n3', none: null, one: '4' };
    expect(readOptions(rows, given)).toEqual({
      list: [1, 2],
      text: [1, 2, 3],
      none: [],
      one: [4],
      absent: [],
    });
  });

  it('are separated by what an option says', () => {
    const lines = row('lines', TEXT_OPTION, { is_list: true, separator: '\n' });
    expect(readOptions([lines], { lines: 'a, b\n\nc\n' })).toEqual({ lines: ['a, b', 'c'] });
  });

  it('cannot be changed', () => {
    expect(Object.isFrozen(readOptions([row('a', TEXT_OPTION)], {}))).toBe(true);
  });

  it.each<[string, OptionRow]>([
    ['--a-number must be an integer from 1 to 5', row('a_number', integerOption(1, 5), { standard: '1' })],
    ['--a-number must be an integer from 1 to 5', row('a_number', integerOption(1, 5))],
    ['--a-list must be a single value', row('a_list', integerOption(1), { standard: '1' })],
    ['--an-object must be true or false', row('an_object', SWITCH_OPTION, { is_list: true })],
    ['--a-list must be true or false', row('a_list', SWITCH_OPTION, { is_list: true })],
  ])('are refused by name, with what is accepted: %s', (message, option) => {
    const read = () => readOptions([option], { a_number: '6', a_list: ['1', '2'], an_object: { a: 1 } });
    expect(read).toThrow(message);
    expect(read).toThrow(expect.objectContaining({ exit_code: 2 }));
  });
});

it('an error names the flag of an option', () => {
  expect(badOption('node_memory', 'must be a size')).toMatchObject({
    message: '--node-memory must be a size',
    exit_code: 2,
  });
});
