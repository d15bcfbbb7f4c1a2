import { type Static, type TSchema, Type } from 'typebox';
import { VARIABLES_MAX } from '../defaults.ts';

/** Environment variables: a value, or something else that `value` allows, by name. */
export function environmentOf<Value extends TSchema>(value: Value) {
  // `Type.Record` does not check names with a line break.
  return Type.Unsafe<Record<string, Static<Value>>>({
    type: 'object',
    maxProperties: VARIABLES_MAX,
    propertyNames: { pattern: '^[^=\\u0000]+$', description: 'non-empty text without = and NUL' },
    additionalProperties: value,
  });
}
