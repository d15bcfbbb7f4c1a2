import { Type } from 'typebox';
import { describe, expect, it } from 'vitest';
import {
  type DocumentedProgram,
  type DocumentedRoute,
  openApiDocument,
} from '../../../src/base/http/openapi.ts';
import { problemOf } from '../../../src/base/schema.ts';
import { EVENT_TYPES } from '../../../src/contract/events.ts';
import { closedObject, Flag, integerFrom, namedObject, pageLimit } from '../../../src/contract/field.ts';
import type { Route } from '../../../src/contract/routes/route.ts';
import { WEBHOOK_DOCS } from '../../../src/contract/routes/webhook.ts';
import { dereferenced } from '../../support/dereferenced.ts';

type Json = Record<string, unknown>;

const PROGRAM: DocumentedProgram = {
  title: 'program',
  description: 'd',
  security_schemes: {},
  webhooks: {},
};

/** A row with what the test is about. */
function rowWith(more: Partial<Route> = {}): Route {
  return { method: 'GET', path: '/things/:id', tag: 'files', summary: 's', ...more };
}

function documentOf(...routes: DocumentedRoute[]): object {
  return dereferenced(openApiDocument(PROGRAM, routes));
}

function operationOf(row: Partial<Route>, more: Partial<DocumentedRoute> = {}): Json {
  const whole = { id: 'doIt', row: rowWith(row), security: [], errors: [], ...more };
  const { paths } = documentOf(whole) as { paths: Record<string, Record<string, Json>> };
  const [operation] = Object.values(Object.values(paths)[0] ?? {});
  return operation ?? {};
}

describe('an OpenAPI document', () => {
  it('has the operations of a path together, with its parameters in braces', () => {
    const route = (method: Route['method'], path: string) => ({
      id: 'doIt',
      row: rowWith({ method, path }),
      security: [],
      errors: [],
    });
    const document = openApiDocument(PROGRAM, [
      route('GET', '/things/:id/parts/:part'),
      route('DELETE', '/things/:id/parts/:part'),
      route(['PUT', 'POST'], '/files/*'),
    ]);
    expect(document).toMatchObject({ openapi: '3.1.0', info: { title: 'program' } });
    const { paths } = document as {
      paths: Record<string, Record<string, { operationId: string; parameters: Json[] }>>;
    };
    expect(Object.entries(paths).map(([path, methods]) => [path, Object.keys(methods)])).toEqual([
      ['/things/{id}/parts/{part}', ['get', 'delete']],
      ['/files/{path}', ['put', 'post']],
    ]);
    expect(paths['/things/{id}/parts/{part}']?.get?.parameters).toEqual([
      expect.objectContaining({ in: 'path', name: 'id', required: true, schema: { type: 'string' } }),
      { in: 'path', name: 'part', required: true, schema: { type: 'string' }, example: 'text' },
    ]);
    const ids = Object.values(paths).flatMap((methods) =>
      Object.values(methods).map((each) => each.operationId),
    );
    expect(ids).toEqual(['doIt', 'doIt', 'doItWithPut', 'doItWithPost']);
  });

  it('has the parameters of a query; what has a default may be absent', () => {
    const query = closedObject({
      follow: Flag,
      limit: pageLimit(10, 20),
      state: Type.Enum(['on', 'off']),
      after: Type.Optional(integerFrom(0)),
    });
    const { parameters } = operationOf({ query, path: '/things' });
    expect(parameters).toMatchObject([
      { in: 'query', name: 'follow', required: false, schema: { type: 'boolean', default: false } },
      { in: 'query', name: 'limit', required: false, schema: { minimum: 1, default: 10 } },
      { in: 'query', name: 'state', required: true, schema: { enum: ['on', 'off'] } },
      { in: 'query', name: 'after', required: false, schema: { type: 'integer', minimum: 0 } },
    ]);
  });

  it('is refused by the name of a route with a schema that it cannot show', () => {
    const data = closedObject({ parts: Type.Array(closedObject({ at: Type.BigInt() })) });
    for (const row of [{ data }, { query: data }, { body: data }]) {
      expect(() => operationOf(row)).toThrow('documents cannot show the type bigint in a schema of doIt');
    }
    const named = closedObject({ type: Type.Enum(['bigint']) });
    expect(operationOf({ data: named }).responses).toHaveProperty('200');
  });

  it('has the body that the route checks, or says that it takes', () => {
    const body = closedObject({ name: Type.String() });
    const json = { 'application/json': { schema: body, example: { name: 'main.py' } } };
    expect(operationOf({ body }).requestBody).toEqual({ required: true, content: json });
    expect(operationOf({ body, is_raw: true }).requestBody).toMatchObject({ content: json });
    expect(operationOf({ body, is_body_optional: true }).requestBody).toMatchObject({ required: false });
    expect(operationOf({ body_media: 'application/octet-stream' }).requestBody).toEqual({
      required: true,
      content: { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } },
    });
    expect(operationOf({})).not.toHaveProperty('requestBody');
  });

  it('has the answer in its envelope, and one error for all', () => {
    const data = Type.Array(Type.String());
    expect(operationOf({ data, status: 201 }).responses).toMatchObject({
      201: { content: { 'application/json': { schema: { required: ['success', 'data'] } } } },
      default: {
        content: { 'application/json': { schema: { required: ['success', 'error'] } } },
      },
    });
    expect(operationOf({ media: 'text/plain' }).responses).toMatchObject({
      200: { content: { 'text/plain': { schema: { type: 'string' } } } },
    });
    expect(openApiDocument(PROGRAM, [])).toMatchObject({
      components: { schemas: { Error: { required: ['success', 'error'] } } },
    });
  });

  it('says which scope a caller needs', () => {
    expect(operationOf({}).security).toEqual([]);
    expect(operationOf({}, { security: [{ token: ['admin'] }] }).security).toEqual([{ token: ['admin'] }]);
  });

  it('has headers with their meaning', () => {
    const headers = { 'Idempotency-Key': 'once' };
    expect(operationOf({ headers, path: '/things' }).parameters).toEqual([
      {
        in: 'header',
        name: 'Idempotency-Key',
        required: false,
        schema: { type: 'string' },
        description: 'once',
      },
    ]);
  });

  it('has each error by its status, with its details, and when to try again', () => {
    const row = rowWith({ path: '/', errors: ['conflict', 'directory_not_empty', 'too_many_requests'] });
    const route = { id: 'doIt', row, security: [], is_charged: true };
    const errors = ['quota_exceeded', 'conflict'] as const;
    const document = openApiDocument(PROGRAM, [{ ...route, errors }]) as {
      paths: Record<string, { get: { responses: Record<string, Json> } }>;
      components: { schemas: Record<string, Json> };
    };
    const { 409: refused, 429: later } = document.paths['/']?.get.responses ?? {};
    expect(refused).toMatchObject({
      description: 'conflict, directory_not_empty',
      content: {
        'application/json': {
          schema: {
            anyOf: [
              { $ref: '#/components/schemas/ConflictError' },
              { $ref: '#/components/schemas/DirectoryNotEmptyError' },
            ],
          },
        },
      },
    });
    expect(Object.keys(later?.headers ?? {})).toEqual([
      'X-Request-Id',
      'RateLimit-Policy',
      'RateLimit',
      'X-RateLimit-Limit',
      'X-RateLimit-Remaining',
      'Retry-After',
    ]);
    const names = Object.keys(document.components.schemas);
    expect(names.filter((name) => name.endsWith('Error')).sort()).toEqual([
      'ConflictError',
      'DirectoryNotEmptyError',
      'Error',
      'QuotaExceededError',
      'TooManyRequestsError',
    ]);
    const error = { code: 'quota_exceeded', message: 'no' };
    const details = { dimension: 'api_requests', limit: 1, current: null, requested: 1, retry_after_ms: 5 };
    const schema = dereferenced(document).components.schemas.QuotaExceededError ?? {};
    expect(problemOf(schema, { success: false, error: { ...error, details } })).toBeNull();
    expect(problemOf(schema, { success: false, error: { ...error, code: 'conflict' } })).not.toBeNull();
    const { limit, ...incomplete } = details;
    expect(problemOf(schema, { success: false, error: { ...error, details: incomplete } })).toMatchObject({
      field: 'error.details.limit',
    });
  });

  it('has the ten events as webhooks, each with an example', () => {
    const document = openApiDocument({ ...PROGRAM, webhooks: WEBHOOK_DOCS }, []);
    const { webhooks } = dereferenced(document) as unknown as {
      webhooks: Record<string, { post: { operationId: string; requestBody: { content: Json } } }>;
    };
    expect(Object.keys(webhooks)).toEqual([...EVENT_TYPES]);
    for (const [type, { post }] of Object.entries(webhooks)) {
      const { schema, example } = post.requestBody.content['application/json'] as Record<string, object>;
      expect(problemOf(schema ?? { not: {} }, example), type).toBeNull();
      expect(example).toMatchObject({ event_type: type });
    }
    expect(webhooks['process.exited']?.post.operationId).toBe('onProcessExited');
  });
});

const State = Type.Enum(['on', 'off'], { title: 'LampState' });
const Lamp = namedObject('Lamp', { state: State, other: Type.Optional(State), title: Type.String() });

function namedDocumentOf(rows: Partial<Route>[]) {
  const routes = rows.map((row, index) => ({
    id: `do${index}`,
    row: rowWith({ path: `/${index}`, ...row }),
    security: [],
    errors: [],
  }));
  return openApiDocument(PROGRAM, routes) as {
    info: object;
    paths: Record<string, { get: { parameters: object; responses: Record<string, { content: object }> } }>;
    components: { schemas: Record<string, object> };
  };
}

describe('schemas with a title', () => {
  it('refers to schemas with a title by it, so that clients have a type of that name, and to the answers with them', () => {
    const { info, paths, components } = namedDocumentOf([
      { data: Lamp, also: { 201: 'made' }, query: closedObject({ state: State }) },
      { data: Type.Array(Lamp) },
    ]);
    const state = { $ref: '#/components/schemas/LampState' };
    expect(info).toMatchObject({ title: 'program' });
    expect(paths['/0']?.get.parameters).toEqual([
      { in: 'query', name: 'state', required: true, schema: state },
    ]);
    const example = { success: true, data: { state: 'on', other: 'on', title: 'text' } };
    for (const status of [200, 201]) {
      expect(paths['/0']?.get.responses[status]?.content).toEqual({
        'application/json': { schema: { $ref: '#/components/schemas/LampResponse' }, example },
      });
    }
    expect(paths['/1']?.get.responses[200]?.content).toMatchObject({
      'application/json': { schema: { $ref: '#/components/schemas/Do1Response' } },
    });
    expect(components.schemas).toMatchObject({
      LampState: { enum: ['on', 'off'] },
      Lamp: { properties: { state, other: state, title: { type: 'string' } } },
      LampResponse: { properties: { data: { $ref: '#/components/schemas/Lamp' } } },
      Do1Response: { properties: { data: { items: { $ref: '#/components/schemas/Lamp' } } } },
    });
  });

  it('refuses two schemas with one title', () => {
    const other = namedObject('Lamp', { colour: Type.String() });
    expect(() => namedDocumentOf([{ data: Lamp }, { data: other }])).toThrow(
      'two schemas have the title Lamp',
    );
  });
});
