import { type TSchema, Type } from 'typebox';

/** Pieces of schemas that every subject uses. Both programs load schemas with their routes, never at their start. */

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

/** An RFC 3339 timestamp. */
export const Time = Type.String({ format: 'date-time' });

/** A timestamp or null. */
export const OptionalTime = orNull(Time);

/** A text that a system call takes. */
export const PlainText = Type.String({ pattern: '^[^\\u0000]*$', description: 'a string without NUL' });
