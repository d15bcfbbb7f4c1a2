import type { Routes } from '../src/contract/routes/route.ts';

/** A schema, as it is in memory: what typebox checks by code is in fields that no document shows. */
interface Schema {
  type?: string;
  $ref?: string;
  items?: Schema | readonly Schema[];
  properties?: Readonly<Record<string, Schema>>;
  patternProperties?: Readonly<Record<string, Schema>>;
  additionalProperties?: Schema | boolean;
  anyOf?: readonly Schema[];
  allOf?: readonly Schema[];
}

const TYPES = new Set(['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']);
/** Checks and conversions in code. */
const CODE = ['~refine', '~codec'];

/**
 * Throws where a row has a schema that documents, and so the package's types, cannot show, by operation id and field:
 * `startProcess, body.command: …`.
 */
export function checkShown(rows: Routes): void {
  for (const [id, row] of Object.entries(rows)) {
    for (const part of ['query', 'body', 'data', 'content'] as const) {
      const problem = row[part] === undefined ? null : problemOf(row[part], part);
      if (problem !== null) throw new Error(`documents cannot show the schema of ${id}, ${problem}`);
    }
  }
}

function problemOf(schema: Schema, place: string): string | null {
  const { type, $ref, items = {} } = schema;
  if (type !== undefined && !TYPES.has(type)) return `${place}: no type of JSON is ${type}`;
  if ($ref !== undefined) return `${place}: ${$ref} is no schema of the document`;
  if (Array.isArray(items)) return `${place}: a tuple`;
  const code = CODE.find((name) => Object.hasOwn(schema, name));
  if (code !== undefined) return `${place}: ${code} is code`;
  for (const [name, part] of partsOf(schema)) {
    const problem = problemOf(part, `${place}${name}`);
    if (problem !== null) return problem;
  }
  return null;
}

function partsOf({ items, properties, patternProperties, additionalProperties, anyOf, allOf }: Schema) {
  const fields = Object.entries(properties ?? {}).map(([name, part]) => [`.${name}`, part] as const);
  const others = [additionalProperties, ...Object.values(patternProperties ?? {})];
  const entries = [items as Schema | undefined, ...others].flatMap((part) =>
    typeof part === 'object' ? [['[]', part] as const] : [],
  );
  const same = [...(anyOf ?? []), ...(allOf ?? [])].map((part) => ['', part] as const);
  return [...fields, ...entries, ...same];
}
