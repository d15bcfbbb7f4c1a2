import type { RouteOptions } from 'fastify';
import type { TSchema } from 'typebox';
import { VERSION } from '../../base/version.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    doc?: RouteDoc;
  }
}

/** The documentation of a route, in addition to its path, its scope and the schemas that its requests are checked by. */
export interface RouteDoc {
  summary: string;
  /** The schema of `data` in the answer. */
  data?: TSchema;
  /** The status of a success; 200 if undefined. */
  status?: number;
  /** The body may be left out. */
  is_body_optional?: boolean;
  headers?: Record<string, string>;
}

/** A route as it was registered. */
export type DocumentedRoute = Pick<RouteOptions, 'url' | 'method' | 'schema' | 'config'>;

const ERROR = {
  type: 'object',
  required: ['success', 'error'],
  properties: {
    success: { const: false },
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: { code: { type: 'string' }, message: { type: 'string' }, details: {} },
    },
  },
};

/** The OpenAPI document of all routes that have a `doc`. Source: contract section 7, `/openapi.json`. */
export function openApiDocument(routes: readonly DocumentedRoute[]): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    if (!route.config?.doc) continue;
    const path = route.url.replaceAll(/:(\w+)/g, '{$1}').replace(/\*$/, '{path}');
    paths[path] ??= {};
    for (const method of [route.method].flat()) {
      paths[path][method.toLowerCase()] = operation(route, path, route.config.doc);
    }
  }
  return {
    openapi: '3.1.0',
    info: { title: 'sandbox-manager', version: VERSION },
    paths,
    components: {
      schemas: { Error: ERROR },
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    },
  };
}

function operation({ schema, config }: DocumentedRoute, path: string, doc: RouteDoc): object {
  const is_open = config?.is_open === true;
  const scope = config?.scope;
  return {
    summary: doc.summary,
    ...(is_open ? {} : { security: [{ token: scope ? [scope] : [] }] }),
    parameters: [
      ...pathParameters(path),
      ...queryParameters(schema?.querystring),
      ...headerParameters(doc.headers),
    ],
    ...(schema?.body
      ? {
          requestBody: {
            required: doc.is_body_optional !== true,
            content: { 'application/json': { schema: schema.body } },
          },
        }
      : {}),
    responses: {
      [doc.status ?? 200]: { description: 'success', ...content(doc.data) },
      default: {
        description: 'an error of the catalogue',
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    },
  };
}

function content(data: TSchema | undefined): object {
  if (!data) return {};
  const schema = {
    type: 'object',
    required: ['success', 'data'],
    properties: { success: { const: true }, data },
  };
  return { content: { 'application/json': { schema } } };
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
