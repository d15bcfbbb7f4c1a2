import type { RouteOptions } from 'fastify';
import type { TSchema } from 'typebox';
import { ApiError, type ErrorCode } from '../../contract/errors.ts';
import { VERSION } from '../version.ts';

/** The documentation of a route, in addition to its path and the schemas that its requests are checked by. */
export interface RouteDoc {
  summary: string;
  /** The schema of `data` in the answer. */
  data?: TSchema | undefined;
  /** The type of an answer that is not JSON. */
  media?: string;
  /** The status of a success; 200 if undefined. */
  status?: number;
  /** The schema of a body that the route checks by itself. */
  body?: TSchema;
  /** The type of a body that is not JSON. */
  body_media?: string;
  /** The body may be left out. */
  is_body_optional?: boolean;
  headers?: Record<string, string>;
  /** The errors of the route's own; those of every route are not among them. */
  errors?: readonly ErrorCode[];
}

/** A route as it was registered. */
export type RegisteredRoute = Pick<RouteOptions, 'url' | 'method' | 'schema'>;

/** One operation of a document: a route, and what a caller needs. */
export interface DocumentedRoute extends RegisteredRoute {
  doc: RouteDoc;
  /** The scopes that the caller's token needs; null if the route needs no token. */
  scopes: string[] | null;
}

const ERROR = {
  type: 'object',
  required: ['success', 'error'],
  properties: {
    success: { const: false },
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: {
        code: { type: 'string' },
        message: { type: 'string' },
        details: { description: 'an object with what is at fault, such as the `field` or the `path`' },
      },
    },
  },
};

/**
 * The OpenAPI 3.1 document of the routes; `events` are the schemas of delivered requests by their type. Source:
 * contract section 4, GET `/openapi.json`, and section 7, `/openapi.json`.
 */
export function openApiDocument(
  title: string,
  routes: readonly DocumentedRoute[],
  events: Record<string, TSchema> = {},
): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = route.url.replaceAll(/:(\w+)/g, '{$1}').replace(/\*$/, '{path}');
    paths[path] ??= {};
    for (const method of [route.method].flat()) paths[path][method.toLowerCase()] = operation(route, path);
  }
  const webhooks = Object.entries(events).map(([type, schema]) => [type, webhook(type, schema)]);
  return {
    openapi: '3.1.0',
    info: { title, version: VERSION },
    paths,
    ...(webhooks.length === 0 ? {} : { webhooks: Object.fromEntries(webhooks) }),
    components: {
      schemas: { Error: ERROR },
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    },
  };
}

function operation({ schema, doc, scopes }: DocumentedRoute, path: string): object {
  return {
    summary: doc.summary,
    ...(scopes === null ? {} : { security: [{ token: scopes }] }),
    parameters: [
      ...pathParameters(path),
      ...queryParameters(schema?.querystring),
      ...headerParameters(doc.headers),
    ],
    ...requestBody((schema?.body as TSchema | undefined) ?? doc.body, doc),
    responses: {
      [doc.status ?? 200]: { description: 'success', ...answer(doc) },
      ...errors(doc),
      default: errorAnswer('an error of the catalogue'),
    },
  };
}

function requestBody(schema: TSchema | undefined, { body_media, is_body_optional }: RouteDoc): object {
  if (schema === undefined && body_media === undefined) return {};
  const content = { [body_media ?? 'application/json']: schema === undefined ? {} : { schema } };
  return { requestBody: { required: is_body_optional !== true, content } };
}

function answer({ data, media }: RouteDoc): object {
  if (media !== undefined) return { content: { [media]: {} } };
  if (!data) return {};
  const schema = {
    type: 'object',
    required: ['success', 'data'],
    properties: { success: { const: true }, data },
  };
  return { content: { 'application/json': { schema } } };
}

/** By their statuses, several of which have several codes. */
function errors({ errors = [] }: RouteDoc): object {
  const codes = Map.groupBy(errors, (code) => new ApiError(code).status);
  return Object.fromEntries([...codes].map(([status, same]) => [status, errorAnswer(same.join(', '))]));
}

function errorAnswer(description: string): object {
  return {
    description,
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
  };
}

function webhook(summary: string, schema: TSchema): object {
  const requestBody = { required: true, content: { 'application/json': { schema } } };
  return { post: { summary, requestBody, responses: { '2XX': { description: 'delivered' } } } };
}

function pathParameters(path: string): object[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => parameter('path', name as string, true));
}

function queryParameters(query: unknown): object[] {
  const { properties = {}, required = [] } = (query ?? {}) as {
    properties?: Record<string, { default?: unknown }>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, schema]) => ({
    ...parameter('query', name, required.includes(name) && schema.default === undefined),
    schema,
  }));
}

function headerParameters(headers: Record<string, string> | undefined): object[] {
  return Object.entries(headers ?? {}).map(([name, description]) => ({
    ...parameter('header', name, false),
    description,
  }));
}

function parameter(where: string, name: string, required: boolean): object {
  return { in: where, name, required, schema: { type: 'string' } };
}
