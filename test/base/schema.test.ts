import fc from 'fast-check';
import { Type } from 'typebox';
import { expect, it } from 'vitest';
import { problemOf } from '../../src/base/schema.ts';
import { closedObject, orNull } from '../../src/contract/field.ts';

const Schema = closedObject({
  name: Type.String({ minLength: 1, maxLength: 3 }),
  id: Type.Optional(Type.String({ pattern: '^[a-z]+$', description: 'lowercase letters' })),
  count: Type.Optional(Type.Integer({ minimum: 0, maximum: 9 })),
  least: Type.Optional(Type.Integer({ minimum: 1 })),
  any: Type.Optional(Type.Integer()),
  kind: Type.Optional(Type.Enum(['a', 'b'])),
  is_on: Type.Optional(Type.Boolean()),
  reason: Type.Optional(orNull(Type.String({ maxLength: 3 }))),
  list: Type.Optional(Type.Array(Type.String(), { minItems: 1 })),
  inner: Type.Optional(closedObject({ 'a/b': Type.Enum(['x', 'y']) })),
  env: Type.Optional(Type.Record(Type.String(), Type.String())),
});

const valid = { name: 'a' };

it.each([
  [{}, 'name', 'is required'],
  [{ name: '' }, 'name', 'must not be empty'],
  [{ name: 'abcd' }, 'name', 'must not be longer than 3 characters'],
  [{ name: 1 }, 'name', 'must be a string'],
  [{ ...valid, id: 'A' }, 'id', 'must be lowercase letters'],
  [{ ...valid, count: 10 }, 'count', 'must be an integer from 0 to 9'],
  [{ ...valid, count: -1 }, 'count', 'must be an integer from 0 to 9'],
  [{ ...valid, count: 1.5 }, 'count', 'must be an integer from 0 to 9'],
  [{ ...valid, least: 0 }, 'least', 'must be an integer of at least 1'],
  [{ ...valid, any: '1' }, 'any', 'must be an integer'],
  [{ ...valid, kind: 'c' }, 'kind', 'must be one of a, b'],
  [{ ...valid, is_on: 1 }, 'is_on', 'must be true or false'],
  [{ ...valid, reason: 'abcd' }, 'reason', 'must not be longer than 3 characters'],
  [{ ...valid, list: [] }, 'list', 'must not be empty'],
  [{ ...valid, list: ['a', 1] }, 'list.1', 'must be a string'],
  [{ ...valid, list: 'a' }, 'list', 'must be an array'],
  [{ ...valid, inner: {} }, 'inner.a/b', 'is required: one of x, y'],
  [{ ...valid, inner: { 'a/b': 'x', c: 1 } }, 'inner.c', 'unknown field'],
  [{ ...valid, env: { A: 1 } }, 'env.A', 'must be a string'],
  [{ ...valid, colour: 'red' }, 'colour', 'unknown field'],
  [[], '', 'must be an object'],
  ['text', '', 'must be an object'],
])('of %j, the field %s %s', (value, field, problem) => {
  expect(problemOf(Schema, value)).toEqual({ field, problem });
});

it('there is no problem where a value matches', () => {
  expect(problemOf(Schema, { ...valid, reason: null, env: { A: '' }, list: ['x'] })).toBeNull();
});

it('a problem is one sentence about a field, whatever the value', () => {
  fc.assert(
    fc.property(fc.anything(), (value) => {
      expect(problemOf(Schema, value)?.problem ?? 'is fine').toMatch(/^(is|must|unknown) /);
    }),
  );
});
