import { isDeepStrictEqual } from 'node:util';

/** Fields of a document that hold values, not schemas. */
const VALUES = new Set(['example', 'examples', 'default', 'enum', 'const']);

/**
 * The part of a document with a reference in place of each schema that has a `title`, and those schemas by their titles in
 * `components`, which clients name their types by. Throws where two schemas have one title.
 */
export function withNamedSchemas<Part>(part: Part, components: Record<string, unknown>): Part {
  return referring(part, components) as Part;
}

function referring(value: unknown, components: Record<string, unknown>): unknown {
  if (Array.isArray(value)) return value.map((each) => referring(each, components));
  if (typeof value !== 'object' || value === null) return value;
  const { title, ...rest } = value as Record<string, unknown>;
  if (typeof title === 'string') {
    addComponent(title, fieldsReferring(rest, components), components);
    return { $ref: `#/components/schemas/${title}` };
  }
  return fieldsReferring(value, components);
}

function fieldsReferring(value: object, components: Record<string, unknown>): object {
  const fields = Object.entries(value).map(([name, each]) => [
    name,
    VALUES.has(name) ? each : referring(each, components),
  ]);
  return Object.fromEntries(fields);
}

function addComponent(title: string, schema: object, components: Record<string, unknown>): void {
  const present = components[title];
  if (present !== undefined && !isDeepStrictEqual(present, schema)) {
    throw new Error(`two schemas have the title ${title}`);
  }
  components[title] = schema;
}
