import { Type } from 'typebox';
import type { ErrorCode } from '../errors.ts';
import { namedObject } from '../schema/field.ts';
import { type RouteDoc, type RouteDocs, tagged } from './route-doc.ts';

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

/**
 * What both programs document of health and metrics; `not_ready` are the errors of one that is not ready, `facts` what
 * its liveness says beside. Contract
 * section 4, "Health, metrics and OpenAPI".
 */
export function healthDocs(not_ready: readonly ErrorCode[], facts: Type.TProperties = {}): RouteDocs {
  return tagged('health', {
    'GET /healthz': {
      operation_id: 'getHealth',
      summary: 'Liveness',
      data: namedObject('Health', { alive: Type.Literal(true), ...facts }),
    },
    'GET /readyz': {
      operation_id: 'getReadiness',
      summary: 'Whether the program is ready, and what is degraded',
      data: ReadyData,
      errors: not_ready,
    },
    'GET /metrics': {
      operation_id: 'getMetrics',
      summary: 'Metrics in the Prometheus text format',
      media: 'text/plain',
      errors: not_ready,
    },
  });
}

/** What both programs document of this document. */
export const DOCUMENT_DOC: RouteDoc = {
  operation_id: 'getDocument',
  tag: 'health',
  summary: 'This OpenAPI document',
  media: 'application/json',
  content: Type.Object({}),
};
