import { type HttpApp, success } from '../../base/http/app.ts';
import type { MetricsRegistry } from '../../base/metrics.ts';
import { healthDocs } from '../../contract/documents/health-docs.ts';
import { ApiError, errorBody } from '../../contract/errors.ts';

const DOCS = healthDocs(['unavailable']);
const open = (path: string) => ({ is_open: true, doc: DOCS[`GET ${path}`] });

/** Answers whether a manager is ready. */
export interface Readiness {
  /** Why it is not ready, or null; rejects if the database cannot be used. */
  notReady(): Promise<string | null>;
  /** Further fields of the answer, such as `rate_authority`. */
  facts(): Record<string, unknown>;
}

/** Registers liveness, readiness and metrics, at the root and without a token. Source: contract section 7. */
export function registerHealthRoutes(app: HttpApp, readiness: Readiness, metrics: MetricsRegistry): void {
  app.get('/healthz', { config: open('/healthz') }, async () => success({ alive: true }));

  app.get('/readyz', { config: open('/readyz') }, async (_request, reply) => {
    const reason = await readiness.notReady();
    if (reason !== null) return reply.code(503).send(errorBody(new ApiError('unavailable', reason)));
    return success({ ready: true, ...readiness.facts() });
  });

  app.get('/metrics', { config: open('/metrics') }, async (_request, reply) => {
    reply.type('text/plain; version=0.0.4; charset=utf-8');
    return metrics.text();
  });
}
