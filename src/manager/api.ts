import { createHttpApp, type HttpApp } from '../base/http/app.ts';
import { consoleFiles } from '../base/http/page-files.ts';
import { RequestMetrics } from '../base/http/request-metrics.ts';
import type { Schedule } from '../base/schedule.ts';
import type { NetworkState } from '../contract/network.ts';
import { guardRoutes } from './api/auth.ts';
import { registerConsoleRoutes } from './api/console-routes.ts';
import { teamDeliveryHandlers } from './api/delivery-routes.ts';
import { feedHandlers } from './api/event-routes.ts';
import { healthHandlers } from './api/health-routes.ts';
import { nodeHandlers } from './api/node-routes.ts';
import { registerNotBuilt } from './api/not-built.ts';
import { servePassed } from './api/pass-through-routes.ts';
import { portHandlers, registerPortMethods } from './api/ports/port-routes.ts';
import { quotaHandlers } from './api/quota-routes.ts';
import { Rights } from './api/rights.ts';
import { checkSandboxIds, serveApi } from './api/routes.ts';
import { sandboxHandlers } from './api/sandbox-routes.ts';
import { ApiServer } from './api/server.ts';
import { PassedShares } from './api/team-connections.ts';
import { logTrouble } from './api/trouble-log.ts';
import { usageHandlers } from './api/usage-routes.ts';
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
  checkSandboxIds(app);
  registerNotBuilt(app);
  await serveApi(app, {
    ...sandboxHandlers({ ...parts, store, seal, traffic: usage.traffic }),
    ...portHandlers(passing),
    ...feedHandlers({ ...passing, feed: parts.feed }),
    ...teamDeliveryHandlers(delivery),
    ...quotaHandlers({
      ...quotas,
      network: () => runtime.networks.state(),
      onPolicyChange: () => schedule.wake(NETWORK_JOB),
    }),
    ...nodeHandlers(quotas),
    ...usageHandlers(usage),
    ...healthHandlers(readinessOf(parts), metrics),
  });
  await servePassed(app, passing);
  await registerPortMethods(app, passing);
  if (has_console) registerConsoleRoutes(app, consoleFiles);
  await app.ready();
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
