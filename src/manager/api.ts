import { createHttpApp, type HttpApp } from '../base/http-app.ts';
import { guardRoutes } from './auth.ts';
import type { Parts } from './parts.ts';
import { explainRefusals } from './quotas.ts';
import { registerDeliveryRoutes } from './routes/deliveries.ts';
import { registerHealthRoutes } from './routes/health-routes.ts';
import { registerPassThroughRoutes } from './routes/pass-through-routes.ts';
import { registerQuotaRoutes } from './routes/quota-routes.ts';
import { registerSandboxRoutes } from './routes/sandbox-routes.ts';
import { registerUsageRoutes } from './routes/usage-routes.ts';
import { logTrouble, registerRoutes } from './routes.ts';
import { ApiServer } from './server.ts';
import { PassedShares } from './team-connections.ts';
import type { TokenStore } from './token-store.ts';

/** The API over the parts, ready to listen. Source: contract section 7. */
export async function makeApi(parts: Parts, tokens: TokenStore): Promise<ApiServer> {
  const { works, quotas, usage, delivery } = parts;
  const { log, clock, store, runtime, metrics } = works;
  const app: HttpApp = createHttpApp(log);
  const server = new ApiServer(app, clock);
  logTrouble(app, log);
  explainRefusals(app);
  guardRoutes(app, tokens, (...request) => quotas.charges.charge(...request));
  await registerRoutes(app, [
    (routes) => registerSandboxRoutes(routes, { ...parts, store }),
    (routes) => registerPassThroughRoutes(routes, { ...parts, runtime, clock, shares: new PassedShares() }),
    (routes) => registerDeliveryRoutes(routes, delivery),
    (routes) => registerQuotaRoutes(routes, quotas),
    (routes) => registerUsageRoutes(routes, usage),
    (routes) => registerHealthRoutes(routes, readinessOf(parts), metrics),
  ]);
  return server;
}

function readinessOf({ works, recovery, quotas }: Parts) {
  return {
    async notReady(): Promise<string | null> {
      // Rejects where the database cannot be used.
      await works.store.countByStatus();
      return recovery.is_done ? null : 'What was left behind is being settled.';
    },
    facts: () => quotas.facts(),
  };
}
