import { Type } from 'typebox';
import type { ErrorCode } from '../errors.ts';
import { namedObject } from '../field.ts';

/** The answer of `/readyz`; each program adds facts of its own. */
const ReadyData = Type.Object(
  {
    ready: Type.Literal(true),
    degraded: Type.Optional(
      Type.Array(Type.String(), { description: 'what was lost or is only polled, in words' }),
    ),
  },
  { title: 'Readiness' },
);

const tag = 'health' as const;

/**
 * Health, metrics and document of either program. `access`: what its table says of a route that requires nothing;
 * `not_ready`: the errors of one that is not ready; `facts`: what its liveness says beside. Contract section 4, "Health,
 * metrics and OpenAPI".
 */
export function healthRoutes<const Access extends object, Facts extends Type.TProperties>(
  access: Access,
  not_ready: readonly ErrorCode[],
  facts: Facts,
) {
  const get = { method: 'GET', tag, ...access } as const;
  return {
    getHealth: {
      ...get,
      path: '/healthz',
      summary: 'Liveness',
      data: namedObject('Health', { alive: Type.Literal(true), ...facts }),
    },
    getReadiness: {
      ...get,
      path: '/readyz',
      summary: 'Whether the program is ready, and what is degraded',
      data: ReadyData,
      errors: not_ready,
    },
    getMetrics: {
      ...get,
      path: '/metrics',
      summary: 'Metrics in the Prometheus text format',
      media: 'text/plain',
      errors: not_ready,
    },
  } as const;
}

/** The route of the document itself. */
export const DOCUMENT_ROUTE = {
  method: 'GET',
  path: '/openapi.json',
  tag,
  summary: 'This OpenAPI document',
  media: 'application/json',
  content: Type.Object({}),
} as const;
