/** A document with each named schema in the place of its references. */
export function dereferenced<Document extends object>(document: Document): Document {
  const { schemas } = (document as unknown as { components: { schemas: Record<string, unknown> } })
    .components;
  const within = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(within);
    if (typeof value !== 'object' || value === null) return value;
    const { $ref } = value as { $ref?: unknown };
    const [, name] = /^#\/components\/schemas\/(.+)$/.exec(String($ref)) ?? [];
    if (name !== undefined && !Object.hasOwn(schemas, name)) throw new Error(`there is no schema ${name}`);
    if (name !== undefined) return within(schemas[name]);
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, within(each)]));
  };
  return within(document) as Document;
}
