import { Type } from 'typebox';
import { expect, it } from 'vitest';
import { openApiDocument } from '../../../src/base/http/openapi.ts';
import type { RouteDoc } from '../../../src/contract/documents/route-doc.ts';
import { closedObject, namedObject } from '../../../src/contract/schema/field.ts';

const State = Type.Enum(['on', 'off'], { title: 'LampState' });
const Lamp = namedObject('Lamp', { state: State, other: Type.Optional(State), title: Type.String() });

function documentOf(docs: Partial<RouteDoc>[]) {
  const program = { title: 'program', description: 'd', security_schemes: {} };
  const routes = docs.map((doc, index) => ({
    url: `/${index}`,
    method: 'GET',
    doc: { operation_id: `do${index}`, tag: 'files' as const, summary: 's', ...doc },
    security: [],
    errors: [],
  }));
  return openApiDocument(program, routes) as {
    info: object;
    paths: Record<string, { get: { parameters: object; responses: Record<string, { content: object }> } }>;
    components: { schemas: Record<string, object> };
  };
}

it('refers to schemas with a title by it, so that clients have a type of that name, and to the answers with them', () => {
  const { info, paths, components } = documentOf([
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
  expect(() => documentOf([{ data: Lamp }, { data: other }])).toThrow('two schemas have the title Lamp');
});
