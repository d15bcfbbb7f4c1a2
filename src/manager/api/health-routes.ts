import type { MetricsRegistry } from '../../base/metrics.ts';
import { ApiError, errorBody } from '../../contract/errors.ts';
import type { ApiHandlers } from './routes.ts';

/** Answers whether a manager is ready. */
export interface Readiness {
  /** Why it is not ready, or null; rejects if the database cannot be used. */
  notReady(): Promise<string | null>;
  /** Further fields of the answer, such as `rate_authority`. */
  facts(): Record<string, unknown>;
}

/** Liveness, readiness and metrics, at the root and without a token. Source: contract section 7. */
export function healthHandlers(readiness: Readiness, metrics: MetricsRegistry) {
  return {
    async getHealth() {
      return { alive: true };
    },
    async getReadiness({ reply }) {
      const reason = await readiness.notReady();
      if (reason === null) return { ready: true, ...readiness.facts() };
      reply.code(503).send(errorBody(new ApiError('unavailable', reason)));
    },
    async getMetrics({ reply }) {
      reply.type('text/plain; version=0.0.4; charset=utf-8');
      return metrics.text();
    },
  } satisfies Partial<ApiHandlers>;
}
