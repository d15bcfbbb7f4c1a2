import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  badOption,
  choiceOption,
  integerOption,
  type OptionRow,
  type OptionType,
  readOptions,
  SWITCH_OPTION,
} from '../../../src/base/options.ts';
import { OptionError } from '../../../src/contract/errors.ts';
import {
  DATABASE_URL,
  FILE_PATH,
  LABEL,
  LISTEN_ADDRESS,
  REDIS_URL,
} from '../../../src/manager/config/option-values.ts';

const upTo9 = integerOption(1, 9).parse;
/** The value of one option. */
const valueFrom = (given: object, name: string, type: OptionType<unknown>, more: Partial<OptionRow> = {}) =>
  readOptions([{ name, value: 'value', description: '', type, ...more }], { ...given })[name];
/** The type with another sentence. */
const as = <Value>({ parse }: OptionType<Value>, accepted: string): OptionType<Value> => ({
  parse,
  accepted,
});

describe('the values of options', () => {
  it('are read as texts, whatever a file holds, with a standard for what is not given', () => {
    const given = { replicas: 3, region: null };
    expect(valueFrom(given, 'replicas', integerOption(1, 9), { standard: '1' })).toBe(3);
    expect(valueFrom(given, 'region', as(LABEL, 'must be a label'), { standard: 'local' })).toBe('local');
    expect(valueFrom(given, 'redis', as(REDIS_URL, 'must be a URL'))).toBeNull();
  });

  it('are refused by the name of the option', () => {
    const given = { node_sandboxes: '10', region: ['a'], redis: '' };
    const reads: [string, () => unknown][] = [
      [
        '--node-sandboxes must be 1 to 9',
        () =>
          valueFrom(given, 'node_sandboxes', as(integerOption(1, 9), 'must be 1 to 9'), { standard: '1' }),
      ],
      [
        '--region must be a single value',
        () => valueFrom(given, 'region', as(LABEL, 'must be a label'), { standard: 'local' }),
      ],
      ['--redis must be a URL', () => valueFrom(given, 'redis', as(REDIS_URL, 'must be a URL'))],
    ];
    for (const [message, read] of reads) {
      expect(read).toThrow(OptionError);
      expect(read).toThrow(expect.objectContaining({ message, exit_code: 2 }));
    }
    expect(badOption('data_dir', 'must not be empty')).toMatchObject({
      field: '--data-dir',
      problem: 'must not be empty',
    });
  });

  it('that repeat are a list, or one text with commas or spaces', () => {
    const listOf = (value: unknown) =>
      valueFrom({ allow_webhook_cidr: value }, 'allow_webhook_cidr', as(LABEL, 'must be labels'), {
        is_list: true,
      });
    expect(listOf(['a', 'b'])).toEqual(['a', 'b']);
    expect(listOf('a,b  c, d')).toEqual(['a', 'b', 'c', 'd']);
    expect(listOf(undefined)).toEqual([]);
    expect(listOf('')).toEqual([]);
    for (const bad of [{ a: 1 }, 5, ['a', 'b c']]) {
      expect(() => listOf(bad)).toThrow('--allow-webhook-cidr must be labels');
    }
  });
});

describe('a parser of option values', () => {
  it.each([
    ['127.0.0.1:8080', ['127.0.0.1', 8080]],
    ['[::1]:0', ['::1', 0]],
    ['localhost:65535', ['localhost', 65_535]],
    ['localhost:65536', null],
    ['::1:80', null],
    ['localhost', null],
    [':80', null],
    ['[]:80', null],
  ])('takes the address %s for %j', (text, expected) => {
    expect(LISTEN_ADDRESS.parse(text)).toEqual(expected);
  });

  it('takes databases and rate authorities by their scheme', () => {
    expect(DATABASE_URL.parse('sqlite:/a/../b.db')).toBe('sqlite:/b.db');
    expect(DATABASE_URL.parse('sqlite:b.db')).toBe(`sqlite:${process.cwd()}/b.db`);
    expect(DATABASE_URL.parse('postgresql://u@h/d')).toBe('postgresql://u@h/d');
    for (const bad of ['', 'sqlite:', 'mysql://h/d', 'postgres:h', 'postgres://[']) {
      expect(DATABASE_URL.parse(bad), bad).toBeNull();
    }
    expect(REDIS_URL.parse('rediss://h:1')).toBe('rediss://h:1');
    for (const bad of ['', 'redis:h', 'http://h', 'redis://[']) expect(REDIS_URL.parse(bad), bad).toBeNull();
  });

  it.each([
    ['on', true],
    ['TRUE', true],
    ['1', true],
    ['yes', true],
    ['off', false],
    ['False', false],
    ['0', false],
    ['no', false],
    ['', null],
    ['maybe', null],
    ['on ', null],
  ])('takes the switch %j for %j', (text, expected) => {
    expect(SWITCH_OPTION.parse(text)).toBe(expected);
  });

  it('takes labels, paths and choices as they are, and nothing else', () => {
    expect([LABEL.parse('eu-1.a_B'), LABEL.parse('x'.repeat(64))]).toEqual(['eu-1.a_B', 'x'.repeat(64)]);
    expect([LABEL.parse(''), LABEL.parse('a b'), LABEL.parse('x'.repeat(65)), LABEL.parse('ü')]).toEqual([
      null,
      null,
      null,
      null,
    ]);
    expect([FILE_PATH.parse('/a/../b'), FILE_PATH.parse('')]).toEqual(['/b', null]);
    const choice = choiceOption(['a', 'b']).parse;
    expect([choice('a'), choice('A'), choice('')]).toEqual(['a', null, null]);
  });

  it('takes integers within their bounds, in digits alone', () => {
    fc.assert(
      fc.property(fc.integer({ min: -20, max: 20 }), (number) => {
        expect(upTo9(String(number))).toBe(number >= 1 && number <= 9 ? number : null);
      }),
    );
    for (const bad of ['', '1.0', '1e0', '+1', ' 1', '0x1', '1'.repeat(16)]) {
      expect(upTo9(bad), bad).toBeNull();
    }
  });
});
