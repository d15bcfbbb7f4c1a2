import { isDeepStrictEqual } from 'node:util';
import type { TSchema } from 'typebox';
import type { ErrorCode } from '../../contract/errors.ts';
import { EXAMPLES } from '../../contract/routes/examples.ts';
import { type Route, TAGS, type WebhookDoc } from '../../contract/routes/route.ts';
import { VERSION } from '../version.ts';
import { ANSWER_HEADERS, answers, errorSchemas, mediaSchema } from './openapi-answer.ts';
import { exampleOf } from './openapi-example.ts';

/** A route of a document, and what a caller needs. */
export interface DocumentedRoute {
  /** The operation id, from which clients make the name of a method. */
  id: string;
  row: Route;
  /** The ways to prove who calls, each with the scopes that it needs; none if the route is open. */
  security: Record<string, string[]>[];
  /** The errors that the route has like others. */
  errors: readonly ErrorCode[];
  /** Whether answers carry the rate headers. */
  is_charged?: boolean;
}

/** What a document says of a whole program. */
export interface DocumentedProgram {
  title: string;
  description: string;
  /** The ways to prove who calls, by name. */
  security_schemes: Record<string, object>;
  /** The requests that the program sends to a webhook, by name. */
  webhooks: Readonly<Record<string, WebhookDoc>>;
}

/** The OpenAPI 3.1 document of a program's routes. Source: contract section 4, GET `/openapi.json`, and section 7, `/openapi.json`. */
export function openApiDocument(program: DocumentedProgram, routes: readonly DocumentedRoute[]): object {
  const { title, description, security_schemes, webhooks } = program;
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const { id, row } = route;
    const path = row.path.replaceAll(/:(\w+)/g, '{$1}').replace(/\*$/, '{path}');
    paths[path] ??= {};
    const methods = [row.method].flat();
    for (const method of methods) {
      const suffix = methods.length === 1 ? '' : `With${method[0]}${method.slice(1).toLowerCase()}`;
      paths[path][method.toLowerCase()] = operation(route, path, id + suffix);
    }
  }
  const used = new Set<string>(
    [...Object.values(webhooks), ...routes.map(({ row }) => row)].map(({ tag }) => tag),
  );
  const tags = Object.entries(TAGS).filter(([tag]) => used.has(tag));
  const named: Record<string, object> = {};
  const requests = Object.entries(webhooks).map(([name, doc]) => [name, { post: webhookRequest(doc) }]);
  const content = withNamedSchemas({ paths, webhooks: Object.fromEntries(requests) }, named);
  const errors = withNamedSchemas(errorSchemas(routes.flatMap(errorsOf)), named);
  return {
    openapi: '3.1.0',
    info: {
      title,
      version: VERSION,
      description,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'the program that serves this document' }],
    tags: tags.map(([name, what]) => ({ name, description: what })),
    ...content,
    components: {
      schemas: { ...errors, ...named },
      headers: usedHeaders(routes.some(({ is_charged }) => is_charged === true)),
      securitySchemes: security_schemes,
    },
  };
}

function usedHeaders(is_charged: boolean): object {
  const { RequestId, RetryAfter } = ANSWER_HEADERS;
  return is_charged ? ANSWER_HEADERS : { RequestId, RetryAfter };
}

function errorsOf({ row, errors }: DocumentedRoute): ErrorCode[] {
  return [...(row.errors ?? []), ...errors];
}

function operation(route: DocumentedRoute, path: string, id: string): object {
  const { row, security, is_charged = false } = route;
  const { query, body, data, content } = row;
  for (const schema of [query, body, data, content]) checkTypes(route.id, schema);
  return {
    operationId: id,
    tags: [row.tag],
    summary: row.summary,
    security,
    parameters: [...pathParameters(path), ...queryParameters(row.query), ...headerParameters(row.headers)],
    ...requestBody(row),
    responses: answers(route.id, row, errorsOf(route), is_charged),
  };
}

function requestBody({ body: schema, body_media, is_body_optional, example }: Route): object {
  if (schema === undefined && body_media === undefined) return {};
  const content =
    schema === undefined
      ? { schema: mediaSchema(body_media ?? '') }
      : { schema, example: example ?? exampleOf(schema, EXAMPLES) };
  return {
    requestBody: {
      required: is_body_optional !== true,
      content: { [body_media ?? 'application/json']: content },
    },
  };
}

/** The parameters of a path, in braces. */
function pathParameters(path: string): object[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => {
    const schema = { type: 'string' };
    return { in: 'path', name, required: true, schema, example: exampleOf(schema, EXAMPLES, name) };
  });
}

/** The parameters of a query; what has a default may be absent. */
function queryParameters(query: unknown): object[] {
  const { properties = {}, required = [] } = (query ?? {}) as {
    properties?: Record<string, TSchema & { default?: unknown }>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, schema]) => {
    const is_required = required.includes(name) && schema.default === undefined;
    return { in: 'query', name, required: is_required, schema };
  });
}

/** Parameters of headers, each with its meaning. */
function headerParameters(headers: Readonly<Record<string, string>> | undefined, required = false): object[] {
  return Object.entries(headers ?? {}).map(([name, description]) => ({
    in: 'header',
    name,
    required,
    schema: { type: 'string' },
    description,
  }));
}

function webhookRequest(doc: WebhookDoc): object {
  const { operation_id, tag, summary, headers, optional_headers, body, answers: meanings } = doc;
  const responses = Object.entries(meanings).map(([status, description]) => [status, { description }]);
  return {
    operationId: operation_id,
    tags: [tag],
    summary,
    security: [],
    parameters: [...headerParameters(headers, true), ...headerParameters(optional_headers)],
    requestBody: {
      required: true,
      content: { 'application/json': { schema: body, example: exampleOf(body, EXAMPLES) } },
    },
    responses: Object.fromEntries(responses),
  };
}

/** Fields of a document that hold values, not schemas. */
const VALUES = new Set(['example', 'examples', 'default', 'enum', 'const']);

/** The types of JSON Schema; typebox has others, which only JavaScript knows. */
const TYPES = new Set(['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']);

/** Throws where a part of a route's schema is of a type that no document shows. */
function checkTypes(id: string, schema: unknown): void {
  if (typeof schema !== 'object' || schema === null) return;
  for (const [name, each] of Object.entries(schema)) {
    if (name === 'type' && typeof each === 'string' && !TYPES.has(each)) {
      throw new Error(`documents cannot show the type ${each} in a schema of ${id}`);
    }
    if (!VALUES.has(name)) checkTypes(id, each);
  }
}

/**
 * The part of a document with a reference in place of each schema that has a `title`, and those schemas by their titles in
 * `components`, which clients name their types by. Throws where two schemas have one title.
 */
function withNamedSchemas<Part>(part: Part, components: Record<string, unknown>): Part {
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
