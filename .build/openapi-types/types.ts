import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript';

/** What of a document becomes types. */
interface Document {
  components: { schemas: Record<string, object> };
  paths: Record<string, Record<string, Operation>>;
}

interface Operation {
  security: Record<string, string[]>[];
  parameters?: object[];
  requestBody?: { content: Record<string, { schema: object }> };
  responses: Record<string, { content?: Record<string, { schema: object }> }>;
}

/** Routes that nobody but the manager reaches, and servers in sandboxes, whose answers are their own. */
const isCalled = (path: string, { security }: Operation) =>
  !path.includes('/ports/') &&
  (security.length === 0 || security.some((each) => !Object.hasOwn(each, 'control_socket')));

interface Declaration {
  name?: { text: string };
}

/**
 * The types of the routes of an OpenAPI document, as a module: parameters, bodies, and the answers of successes. Errors
 * have one shape, which the client throws.
 */
export async function typesOf(document: object): Promise<string> {
  const { paths, components, ...rest } = JSON.parse(JSON.stringify(document)) as Document;
  const called = Object.entries(paths).flatMap(([path, operations]) => {
    const kept = Object.entries(operations).filter(([, operation]) => isCalled(path, operation));
    const item = Object.fromEntries(kept.map(([method, operation]) => [method, withoutErrors(operation)]));
    return kept.length === 0 ? [] : [[path, item]];
  });
  const used = Object.fromEntries(called);
  const trimmed = { ...rest, webhooks: {}, paths: used, components: { schemas: {} } };
  addSchemas(used, components.schemas, trimmed.components.schemas);
  const nodes = await openapiTS(trimmed as unknown as OpenAPI3, { defaultNonNullable: false });
  const kept = nodes.filter((node) =>
    /^(paths|operations|components)$/.test((node as Declaration).name?.text ?? ''),
  );
  return withoutNothing(astToString(kept));
}

/** The types of named schemas, as a module. */
export async function schemaTypesOf(schemas: Readonly<Record<string, object>>): Promise<string> {
  const info = { title: 'schemas', version: '1' };
  const document = { openapi: '3.1.0', info, paths: {}, components: { schemas } };
  const nodes = await openapiTS(document as unknown as OpenAPI3, { defaultNonNullable: false });
  const kept = nodes.filter((node) => (node as Declaration).name?.text === 'components');
  return withoutNothing(astToString(kept));
}

/** Copies the named schemas that `part` refers to, and those that they refer to. */
function addSchemas(part: unknown, all: Record<string, object>, found: Record<string, object>): void {
  for (const [, name = ''] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
    if (Object.hasOwn(found, name)) continue;
    found[name] = all[name] as object;
    addSchemas(found[name], all, found);
  }
}

function withoutErrors({ responses, requestBody, ...rest }: Operation): object {
  const successes = Object.entries(responses).filter(([status]) => /^[123]/.test(status));
  const answers = successes.map(([status, { content }]) => [
    status,
    { description: '', ...(content ? { content: withoutExamples(content) } : {}) },
  ]);
  const body = requestBody && { ...requestBody, content: withoutExamples(requestBody.content) };
  return { ...rest, ...(body ? { requestBody: body } : {}), responses: Object.fromEntries(answers) };
}

function withoutExamples(content: Record<string, { schema: object }>): object {
  return Object.fromEntries(Object.entries(content).map(([media, { schema }]) => [media, { schema }]));
}

/** Leaves out members that say that there is nothing, of which there are thousands. */
function withoutNothing(types: string): string {
  return types
    .replaceAll(/^ +\w+\?: never;\n/gm, '')
    .replaceAll(/^ +headers: \{\n +\[name: string\]: unknown;\n +\};\n/gm, '')
    .replaceAll(/^ +parameters: \{\n +\};\n/gm, '');
}
