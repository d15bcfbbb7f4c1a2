import type { Problem } from '../contract/errors.ts';

/** The keywords of JSON Schema that the schemas of events use. */
export interface EventSchema {
  type?: string;
  const?: unknown;
  enum?: readonly unknown[];
  anyOf?: readonly EventSchema[];
  minimum?: number;
  required?: readonly string[];
  properties?: Readonly<Record<string, EventSchema>>;
  items?: EventSchema;
}

/**
 * The first field of a value that its schema does not take, and the problem in words; null if there is none. Fields that
 * the schema does not name are taken: a later version may send more.
 */
export function problemWith(value: unknown, schema: EventSchema, field = ''): Problem | null {
  if ('const' in schema && value !== schema.const) return { field, problem: `must be ${schema.const}` };
  if (schema.enum && !schema.enum.includes(value)) {
    return { field, problem: `must be one of ${schema.enum.join(', ')}` };
  }
  if (schema.anyOf) {
    const { anyOf } = schema;
    if (anyOf.some((each) => problemWith(value, each) === null)) return null;
    return { field, problem: `must be ${anyOf.map(nameOf).join(' or ')}` };
  }
  if (schema.type !== undefined && !isOfType(value, schema.type))
    return { field, problem: `must be ${nameOf(schema)}` };
  if (schema.minimum !== undefined && (value as number) < schema.minimum) {
    return { field, problem: `must be at least ${schema.minimum}` };
  }
  return problemWithin(value, schema, field);
}

function problemWithin(
  value: unknown,
  { required, properties, items }: EventSchema,
  field: string,
): Problem | null {
  const at = (name: string | number) => (field === '' ? String(name) : `${field}.${name}`);
  for (const name of required ?? []) {
    if (!Object.hasOwn(value as object, name)) return { field: at(name), problem: 'is required' };
  }
  for (const [name, schema] of Object.entries(properties ?? {})) {
    if (!Object.hasOwn(value as object, name)) continue;
    const wrong = problemWith((value as Record<string, unknown>)[name], schema, at(name));
    if (wrong) return wrong;
  }
  if (items === undefined) return null;
  for (const [index, each] of (value as unknown[]).entries()) {
    const wrong = problemWith(each, items, at(index));
    if (wrong) return wrong;
  }
  return null;
}

function isOfType(value: unknown, type: string): boolean {
  if (type === 'null') return value === null;
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value);
  return typeof value === type;
}

function nameOf({ type = 'something else' }: EventSchema): string {
  if (type === 'null') return type;
  return /^[aio]/.test(type) ? `an ${type}` : `a ${type}`;
}
