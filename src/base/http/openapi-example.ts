import type { TSchema } from 'typebox';
import { problemOf } from '../schema.ts';

/** The keywords of a schema that an example is made from. */
interface Keywords {
  const?: unknown;
  enum?: unknown[];
  default?: unknown;
  anyOf?: TSchema[];
  type?: string;
  format?: string;
  minimum?: number;
  properties?: Record<string, TSchema>;
  items?: TSchema;
}

/**
 * A value that the schema takes, for a document: the first of `known` under the field's name that fits, otherwise one of
 * the schema's type. An object has all its fields.
 */
export function exampleOf(
  schema: TSchema,
  known: Readonly<Record<string, readonly unknown[]>>,
  name = '',
): unknown {
  const named = Object.hasOwn(known, name) ? known[name] : undefined;
  const fitting = named?.find((value) => problemOf(schema, value) === null);
  if (fitting !== undefined) return fitting;
  const keywords: Keywords = schema;
  if ('const' in keywords) return keywords.const;
  if (keywords.enum) return keywords.enum[0];
  if (keywords.default !== undefined) return keywords.default;
  if (keywords.anyOf?.[0]) return exampleOf(keywords.anyOf[0], known, name);
  switch (keywords.type) {
    case 'object':
      return Object.fromEntries(
        Object.entries(keywords.properties ?? {}).map(([field, each]) => [
          field,
          exampleOf(each, known, field),
        ]),
      );
    case 'array':
      return keywords.items ? [exampleOf(keywords.items, known)] : [];
    case 'integer':
    case 'number':
      return keywords.minimum ?? 1;
    case 'boolean':
      return true;
    case 'null':
      return null;
    default:
      return keywords.format === 'date-time' ? '2026-01-15T09:30:12.045Z' : 'text';
  }
}
