import { type HttpApp, success } from '../../base/http/app.ts';
import { ApiError, errorBody } from '../../contract/errors.ts';
import { daemonGauges, type GaugeSources } from '../gauges.ts';
import type { Metrics } from '../metrics.ts';
import type { DaemonReadiness } from '../readiness.ts';

/** The slice of the daemon that health and metrics use. */
export interface HealthContext extends GaugeSources {
  readonly metrics: Pick<Metrics, 'text' | 'requests'>;
  readiness(): DaemonReadiness;
}

/** Adds liveness, readiness and metrics at the root; none requires a token. Source: contract section 4. */
export function registerDaemonHealthRoutes(app: HttpApp, daemon: HealthContext): void {
  app.get('/healthz', async () => success({ alive: true }));

  app.get('/readyz', async (_request, reply) => {
    const { not_ready, degraded } = daemon.readiness();
    if (not_ready !== null) {
      const code = daemon.state === 'stopping' ? 'shutting_down' : 'outbox_unavailable';
      return reply.code(503).send(errorBody(new ApiError(code, not_ready)));
    }
    return success({ ready: true, ...(degraded.length > 0 ? { degraded } : {}) });
  });

  app.get('/metrics', async (_request, reply) => {
    reply.type('text/plain; version=0.0.4; charset=utf-8');
    return daemon.metrics.text(daemonGauges(daemon));
  });
}
