import { createHttpApp, type HttpApp } from '../base/http/app.ts';
import { consoleFiles } from '../base/http/page-files.ts';
import { RequestMetrics } from '../base/http/request-metrics.ts';
import type { Schedule } from '../base/schedule.ts';
import type { NetworkState } from '../contract/network.ts';
import { guardRoutes } from './api/auth.ts';
import { registerConsoleRoutes } from './api/console-routes.ts';
import { registerDeliveryRoutes } from './api/delivery-routes.ts';
import { registerEventRoutes } from './api/event-routes.ts';
import { registerHealthRoutes } from './api/health-routes.ts';
import { registerNodeRoutes } from './api/node-routes.ts';
import { registerNotBuilt } from './api/not-built.ts';
import { registerPassThroughRoutes } from './api/pass-through-routes.ts';
import { registerPortRoutes } from './api/ports/port-routes.ts';
import { registerQuotaRoutes } from './api/quota-routes.ts';
import { Rights } from './api/rights.ts';
import { registerRoutes } from './api/routes.ts';
import { registerSandboxRoutes } from './api/sandbox-routes.ts';
import { ApiServer } from './api/server.ts';
import { PassedShares } from './api/team-connections.ts';
import { logTrouble } from './api/trouble-log.ts';
import { registerUsageRoutes } from './api/usage-routes.ts';
import type { TokenStore } from './database/token-store.ts';
import { NETWORK_JOB } from './network-job.ts';
import type { Parts } from './parts.ts';
import { explainRefusals } from './quotas/quotas.ts';

/**
 * Builds the API over the parts, ready to listen, with or without the console; changed policies wake a job of `schedule`.
 * Source: contract section 7.
 */
export async function makeApi(
  parts: Parts,
  tokens: TokenStore,
  schedule: Schedule,
  has_console: boolean,
): Promise<ApiServer> {
  const { services, quotas, usage, delivery, metrics } = parts;
  const { log, clock, store, runtime, seal } = services;
  const app: HttpApp = createHttpApp(log);
  const server = new ApiServer(app, clock);
  const requests = new RequestMetrics();
  requests.count(app);
  metrics.add(requests.metrics());
  logTrouble(app, log, clock);
  explainRefusals(app);
  const rights = new Rights(tokens);
  schedule.add(rights);
  guardRoutes(app, tokens, (...request) => quotas.charges.charge(...request), rights);
  const passing = { ...parts, runtime, clock, shares: new PassedShares() };
  await registerRoutes(app, [
    (routes) => registerSandboxRoutes(routes, { ...parts, store, seal, traffic: usage.traffic }),
    (routes) => registerPassThroughRoutes(routes, passing),
    (routes) => registerPortRoutes(routes, passing),
    (routes) => registerEventRoutes(routes, { ...passing, feed: parts.feed }),
    (routes) => registerDeliveryRoutes(routes, delivery),
    (routes) =>
      registerQuotaRoutes(routes, {
        ...quotas,
        network: () => runtime.networks.state(),
        onPolicyChange: () => schedule.wake(NETWORK_JOB),
      }),
    (routes) => registerNodeRoutes(routes, quotas),
    (routes) => registerUsageRoutes(routes, usage),
    registerNotBuilt,
    (routes) => registerHealthRoutes(routes, readinessOf(parts), metrics),
    ...(has_console ? [(routes: HttpApp) => registerConsoleRoutes(routes, consoleFiles)] : []),
  ]);
  return server;
}

function readinessOf({ services, writes, clock_watch, unseen, orphans, recovery, quotas, delivery }: Parts) {
  return {
    async notReady(): Promise<string | null> {
      // Rejects if the database cannot be used.
      await services.store.countByStatus();
      if (writes.refusal !== null) return writes.refusal;
      return recovery.is_done ? null : 'Abandoned operations are being resolved.';
    },
    facts: () => ({
      ...quotas.facts(),
      ...clock_watch.facts(),
      network: services.runtime.networks.state(),
      runtime_limitations: services.runtime.limitations(),
      ...degradedBy(
        ...delivery.troubles(),
        networkTrouble(services.runtime.networks.state()),
        unseen.trouble(),
        orphans.trouble(),
        ...clock_watch.troubles(),
      ),
    }),
  };
}

function networkTrouble({ mode, reason }: NetworkState): string | null {
  return mode === 'metered' && reason !== null ? `metered sandboxes have no network: ${reason}` : null;
}

/** The field of `/readyz` that says what works with limits; none where all is well. */
function degradedBy(...troubles: (string | null)[]): { degraded?: string[] } {
  const degraded = troubles.filter((trouble) => trouble !== null);
  return degraded.length === 0 ? {} : { degraded };
}
