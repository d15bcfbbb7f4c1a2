import type { TSchema } from 'typebox';
import { EXAMPLES } from '../../contract/documents/examples.ts';
import { exampleOf } from './openapi-example.ts';

/** The parameters of a path, in braces. */
export function pathParameters(path: string): object[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => {
    const schema = { type: 'string' };
    return { in: 'path', name, required: true, schema, example: exampleOf(schema, EXAMPLES, name) };
  });
}

/** The parameters of a query; what has a default may be absent. */
export function queryParameters(query: unknown): object[] {
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
export function headerParameters(
  headers: Readonly<Record<string, string>> | undefined,
  required = false,
): object[] {
  return Object.entries(headers ?? {}).map(([name, description]) => ({
    in: 'header',
    name,
    required,
    schema: { type: 'string' },
    description,
  }));
}
