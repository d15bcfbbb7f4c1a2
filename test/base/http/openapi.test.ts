import { Type } from 'typebox';
import { describe, expect, it } from 'vitest';
import { type DocumentedRoute, openApiDocument } from '../../../src/base/http/openapi.ts';
import { closedObject } from '../../../src/contract/schema/field.ts';
import { Flag, integerFrom, pageLimit } from '../../../src/contract/schema/query.ts';

type Json = Record<string, unknown>;

function operationOf(route: Partial<DocumentedRoute>, url = '/things/:id'): Json {
  const whole = { url, method: 'GET', doc: { summary: 's' }, scopes: null, ...route };
  const { paths } = openApiDocument('program', [whole]) as { paths: Record<string, Record<string, Json>> };
  const [operation] = Object.values(Object.values(paths)[0] ?? {});
  return operation ?? {};
}

describe('an OpenAPI document', () => {
  it('has the operations of a path together, with its parameters in braces', () => {
    const route = (method: string | string[], url: string) => ({
      url,
      method,
      doc: { summary: `${method}` },
      scopes: null,
    });
    const document = openApiDocument('program', [
      route('GET', '/things/:id/parts/:part'),
      route('DELETE', '/things/:id/parts/:part'),
      route(['PUT', 'POST'], '/files/*'),
    ]);
    expect(document).toMatchObject({ openapi: '3.1.0', info: { title: 'program' } });
    const { paths } = document as { paths: Record<string, Record<string, { parameters: Json[] }>> };
    expect(Object.entries(paths).map(([path, methods]) => [path, Object.keys(methods)])).toEqual([
      ['/things/{id}/parts/{part}', ['get', 'delete']],
      ['/files/{path}', ['put', 'post']],
    ]);
    expect(paths['/things/{id}/parts/{part}']?.get?.parameters).toEqual([
      { in: 'path', name: 'id', required: true, schema: { type: 'string' } },
      { in: 'path', name: 'part', required: true, schema: { type: 'string' } },
    ]);
  });

  it('has the parameters of a query; what has a default may be absent', () => {
    const querystring = closedObject({
      follow: Flag,
      limit: pageLimit(10, 20),
      state: Type.Enum(['on', 'off']),
      after: Type.Optional(integerFrom(0)),
    });
    const { parameters } = operationOf({ schema: { querystring } }, '/things');
    expect(parameters).toMatchObject([
      { in: 'query', name: 'follow', required: false, schema: { type: 'boolean', default: false } },
      { in: 'query', name: 'limit', required: false, schema: { minimum: 1, default: 10 } },
      { in: 'query', name: 'state', required: true, schema: { enum: ['on', 'off'] } },
      { in: 'query', name: 'after', required: false, schema: { type: 'integer', minimum: 0 } },
    ]);
  });

  it('has the body that the route checks, or says that it takes', () => {
    const body = closedObject({ name: Type.String() });
    const json = { 'application/json': { schema: body } };
    expect(operationOf({ schema: { body } }).requestBody).toEqual({ required: true, content: json });
    expect(operationOf({ doc: { summary: 's', body } }).requestBody).toMatchObject({ content: json });
    const optional = { summary: 's', is_body_optional: true };
    expect(operationOf({ schema: { body }, doc: optional }).requestBody).toMatchObject({ required: false });
    const raw = { summary: 's', body_media: 'application/octet-stream' };
    expect(operationOf({ doc: raw }).requestBody).toEqual({
      required: true,
      content: { 'application/octet-stream': {} },
    });
    expect(operationOf({})).not.toHaveProperty('requestBody');
  });

  it('has the answer in its envelope, and one error for all', () => {
    const data = Type.Array(Type.String());
    expect(operationOf({ doc: { summary: 's', data, status: 201 } }).responses).toMatchObject({
      201: { content: { 'application/json': { schema: { required: ['success', 'data'] } } } },
      default: {
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    });
    expect(operationOf({ doc: { summary: 's', media: 'text/plain' } }).responses).toMatchObject({
      200: { content: { 'text/plain': {} } },
    });
    expect(openApiDocument('program', [])).toMatchObject({
      components: { schemas: { Error: { required: ['success', 'error'] } } },
    });
  });

  it('says which scope a caller needs', () => {
    expect(operationOf({ scopes: null })).not.toHaveProperty('security');
    expect(operationOf({ scopes: [] }).security).toEqual([{ token: [] }]);
    expect(operationOf({ scopes: ['admin'] }).security).toEqual([{ token: ['admin'] }]);
  });

  it('has headers with their meaning', () => {
    const doc = { summary: 's', headers: { 'Idempotency-Key': 'once' } };
    expect(operationOf({ doc }, '/things').parameters).toEqual([
      {
        in: 'header',
        name: 'Idempotency-Key',
        required: false,
        schema: { type: 'string' },
        description: 'once',
      },
    ]);
  });

  it('has the delivered requests as webhooks, where there are any', () => {
    const schema = Type.Object({});
    expect(openApiDocument('program', [], { 'a.b': schema })).toMatchObject({
      webhooks: {
        'a.b': { post: { requestBody: { content: { 'application/json': { schema } } } } },
      },
    });
    expect(openApiDocument('program', [])).not.toHaveProperty('webhooks');
  });
});
