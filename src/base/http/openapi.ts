import type { RouteOptions } from 'fastify';
import type { TSchema } from 'typebox';
import { EXAMPLES } from '../../contract/documents/examples.ts';
import { type RouteDoc, TAGS } from '../../contract/documents/route-doc.ts';
import type { ErrorCode } from '../../contract/errors.ts';
import { VERSION } from '../version.ts';
import { ANSWER_HEADERS, answers, errorSchemas, mediaSchema } from './openapi-answer.ts';
import { withNamedSchemas } from './openapi-components.ts';
import { exampleOf } from './openapi-example.ts';
import { headerParameters, pathParameters, queryParameters } from './openapi-parameters.ts';
import { webhookDocuments } from './openapi-webhooks.ts';

/** A route as it was registered. */
export type RegisteredRoute = Pick<RouteOptions, 'url' | 'method' | 'schema'>;

/** One operation of a document: a route, and what a caller needs. */
export interface DocumentedRoute extends RegisteredRoute {
  doc: RouteDoc;
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
}

/** The OpenAPI 3.1 document of a program's routes. Source: contract section 4, GET `/openapi.json`, and section 7, `/openapi.json`. */
export function openApiDocument(program: DocumentedProgram, routes: readonly DocumentedRoute[]): object {
  const { title, description, security_schemes } = program;
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = route.url.replaceAll(/:(\w+)/g, '{$1}').replace(/\*$/, '{path}');
    paths[path] ??= {};
    const methods = [route.method].flat();
    for (const method of methods) {
      const id = methods.length === 1 ? '' : `With${method[0]}${method.slice(1).toLowerCase()}`;
      paths[path][method.toLowerCase()] = operation(route, path, id);
    }
  }
  // Webhooks have the tag `events`.
  const used = new Set(['events', ...routes.map(({ doc }) => doc.tag)]);
  const tags = Object.entries(TAGS).filter(([tag]) => used.has(tag));
  const named: Record<string, object> = {};
  const content = withNamedSchemas({ paths, webhooks: webhookDocuments() }, named);
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

function errorsOf({ doc, errors }: DocumentedRoute): ErrorCode[] {
  return [...(doc.errors ?? []), ...errors];
}

function operation(route: DocumentedRoute, path: string, id: string): object {
  const { schema, doc, security, is_charged = false } = route;
  return {
    operationId: doc.operation_id + id,
    tags: [doc.tag],
    summary: doc.summary,
    security,
    parameters: [
      ...pathParameters(path),
      ...queryParameters(schema?.querystring ?? doc.query),
      ...headerParameters(doc.headers),
    ],
    ...requestBody((schema?.body as TSchema | undefined) ?? doc.body, doc),
    responses: answers(doc, errorsOf(route), is_charged),
  };
}

function requestBody(schema: TSchema | undefined, doc: RouteDoc): object {
  const { body_media, is_body_optional, example } = doc;
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
