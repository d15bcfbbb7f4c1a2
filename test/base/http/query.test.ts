import fc from 'fast-check';
import { Type } from 'typebox';
import { describe, expect, it } from 'vitest';
import { convertQuery } from '../../../src/base/http/query.ts';
import { FieldError } from '../../../src/contract/errors.ts';
import { closedObject, Flag, integerFrom, NoQuery, pageLimit } from '../../../src/contract/field.ts';

const Query = closedObject({
  follow: Flag,
  limit: pageLimit(50, 200),
  offset: Type.Optional(integerFrom(0)),
  wait_ms: Type.Optional(integerFrom(0, 600_000)),
  state: Type.Optional(Type.Enum(['open', 'closed'])),
  name: Type.Optional(Type.String()),
  tags: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { maxItems: 2 })),
});

const STANDARD = { follow: false, limit: 50 };

function converted(query: object): unknown {
  const result = convertQuery(Query, query);
  return 'error' in result ? result.error.message : result.value;
}

describe('a query', () => {
  it('gets the defaults of what is absent, and nothing else', () => {
    expect(converted({})).toEqual(STANDARD);
    expect(convertQuery(NoQuery, {})).toEqual({ value: {} });
  });

  it('gathers a parameter that may be repeated', () => {
    expect(converted({ tags: 'a' })).toEqual({ ...STANDARD, tags: ['a'] });
    expect(converted({ tags: ['a', 'b'] })).toEqual({ ...STANDARD, tags: ['a', 'b'] });
    expect(converted({ tags: ['a', ''] })).toMatch(/^tags/);
    expect(converted({ tags: ['a', 'b', 'c'] })).toMatch(/^tags/);
    expect(converted({ name: ['a', 'b'] })).toBe('name: must be given once');
  });

  it('keeps texts as they are', () => {
    fc.assert(
      fc.property(fc.string(), (name) => {
        expect(converted({ name })).toEqual({ ...STANDARD, name });
      }),
    );
  });

  it.each([
    ['', true],
    ['true', true],
    ['1', true],
    ['false', false],
    ['0', false],
    ['TRUE', 'follow: must be true or false'],
    ['yes', 'follow: must be true or false'],
  ])('has a flag %j that means %j', (follow, expected) => {
    expect(converted({ follow })).toEqual(
      typeof expected === 'boolean' ? { ...STANDARD, follow: expected } : expected,
    );
  });

  it('has integers of up to 15 digits, which are exact', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10 ** 15 - 1 }), (offset) => {
        expect(converted({ offset: String(offset) })).toEqual({ ...STANDARD, offset });
      }),
    );
  });

  it.each(['', ' 1', '1 ', '+1', '-1', '01', '1.0', '1e3', '0x1', 'x', '1000000000000000'])(
    'has no integer %j',
    (offset) => {
      expect(converted({ offset })).toBe('offset: must be an integer of at least 0');
    },
  );

  it('names the bounds of an integer', () => {
    expect(converted({ wait_ms: '600000' })).toEqual({ ...STANDARD, wait_ms: 600_000 });
    expect(converted({ wait_ms: '600001' })).toBe('wait_ms: must be an integer from 0 to 600000');
  });

  it.each(['201', '1000000000', '1e9', '1e999', '9'.repeat(40)])('caps the limit %s', (limit) => {
    expect(converted({ limit })).toEqual({ ...STANDARD, limit: 200 });
  });

  it.each(['0', '-1', '1.5', 'many', '', '1e-1'])('refuses the limit %j', (limit) => {
    expect(converted({ limit })).toBe('limit: must be an integer of at least 1');
  });

  it('names the values of an enumeration', () => {
    expect(converted({ state: 'open' })).toEqual({ ...STANDARD, state: 'open' });
    expect(converted({ state: 'ajar' })).toBe('state: must be one of open, closed');
    expect(converted({ state: '' })).toBe('state: must be one of open, closed');
  });

  it('has required parameters without a default', () => {
    const result = convertQuery(closedObject({ state: Type.Enum(['open', 'closed']) }), {});
    expect(result).toEqual({ error: expect.any(FieldError) });
    expect(result).toHaveProperty('error.message', 'state: is required: one of open, closed');
  });

  it('has only the parameters of the schema, each once', () => {
    const own = Object.keys(Query.properties);
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.constantFrom('__proto__', 'constructor', 'toString')), (name) => {
        fc.pre(!own.includes(name));
        expect(converted(Object.fromEntries([[name, 'x']]))).toBe(`${name}: unknown query parameter`);
      }),
    );
    expect(converted({ limit: ['1', '2'] })).toBe('limit: must be given once');
    expect(convertQuery(NoQuery, { colour: 'red' })).toHaveProperty(
      'error.message',
      'colour: unknown query parameter',
    );
  });
});
