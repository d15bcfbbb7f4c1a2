import { type Static, type TSchema, Type } from 'typebox';
import { VARIABLES_MAX } from './defaults.ts';

/** Pieces of schemas that every noun uses. Both programs load schemas with their routes, never at their start. */

/** An object with these fields and no others. */
export function closedObject<Fields extends Type.TProperties>(fields: Fields) {
  return Type.Object(fields, { additionalProperties: false });
}

/** The same as a component of documents under the name `title`: a type of clients that are generated from them. */
export function namedObject<Fields extends Type.TProperties>(title: string, fields: Fields) {
  return Type.Object(fields, { title, additionalProperties: false });
}

/** The same of a request that another program makes: it may be newer, and what it says beyond this is ignored. */
export function openObject<Fields extends Type.TProperties>(title: string, fields: Fields) {
  return Type.Object(fields, { title });
}

/** A value or null. */
export function orNull<Schema extends TSchema>(schema: Schema) {
  return Type.Union([schema, Type.Null()]);
}

/** An integer of at least `minimum`, and at most `maximum`. */
export function integerFrom(minimum: number, maximum?: number) {
  return Type.Integer({ minimum, ...(maximum === undefined ? {} : { maximum }) });
}

/** Any text. */
export const Text = Type.String();

/** A text or null. */
export const OptionalText = orNull(Text);

/** A text that a system call takes. */
export const PlainText = Type.String({ pattern: '^[^\\u0000]*$', description: 'a string without NUL' });

/** An integer from 0. */
export const Whole = integerFrom(0);

/** An integer from 0 to the largest that JSON holds exactly. */
export const SafeWhole = integerFrom(0, Number.MAX_SAFE_INTEGER);

/** An RFC 3339 timestamp, UTC with milliseconds. */
export const Time = Type.String({ format: 'date-time' });

/** A timestamp or null. */
export const OptionalTime = orNull(Time);

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

/** What a sandbox or process uses: CPU time in ms since its start, resident memory in bytes, number of processes. */
export const ResourceUsageData = namedObject('ResourceUsage', {
  cpu_ms: Whole,
  memory_bytes: Whole,
  processes: Whole,
});
export type ResourceUsage = Static<typeof ResourceUsageData>;

// Parameters of a query, which arrive as text; `base/http/query.ts` converts them.

/** The query of a route without parameters. */
export const NoQuery = closedObject({});

/** A schema with a `default` that its type shows too: callers may leave the parameter out, and its handler gets a value. */
export function defaulted<Schema extends TSchema>(schema: Schema): Schema & { default: Static<Schema> } {
  if (!Object.hasOwn(schema, 'default')) throw new Error('the schema has no default');
  return schema as Schema & { default: Static<Schema> };
}

/** A switch: the bare name, `true` and `1` turn it on; `false` and `0` turn it off, like its absence. */
export const Flag = defaulted(Type.Boolean({ default: false }));

/** The length of a page: `standard` if absent. A number above `cap` is capped, never refused. */
export function pageLimit(standard: number, cap: number) {
  return defaulted(
    Type.Integer({
      minimum: 1,
      default: standard,
      description: `values above ${cap} are lowered to ${cap}`,
      'x-cap': cap,
    }),
  );
}
