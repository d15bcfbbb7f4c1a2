import { createHttpApp, type HttpApp } from '../../base/http/app.ts';
import { serve } from '../../base/http/serve.ts';
import type { Log } from '../../base/log.ts';
import { DAEMON_ROUTES } from '../../contract/routes/daemon.ts';
import type { DaemonRoute } from '../../contract/routes/route.ts';
import { type ContextRouteContext, contextHandlers } from './context-routes.ts';
import { type DeliveryContext, deliveryHandlers } from './delivery-routes.ts';
import { type EventStreamContext, eventStreamHandlers } from './event-stream.ts';
import { type FileContext, forwardedFileHandlers } from './files/forwarded-routes.ts';
import type { DaemonHandlers } from './handlers.ts';
import { daemonHealthHandlers, type HealthContext } from './health-routes.ts';
import { type ManagerRouteContext, managerHandlers } from './manager-routes.ts';
import { processHandlers } from './process-routes.ts';
import { type PublishContext, publishHandlers } from './publish/publish-routes.ts';
import { ownSandboxHandlers, type SandboxContext } from './sandbox-routes.ts';

/** The slices of the daemon that its routes use, each beside its route, and the log of failures. */
export type AppDaemon = PublishContext &
  DeliveryContext &
  EventStreamContext &
  SandboxContext &
  ManagerRouteContext &
  ContextRouteContext &
  FileContext &
  HealthContext & { readonly log: Log };

/** Creates the daemon's application, ready to route. `prepare` adds the hooks that run before every route. */
export async function createApp(daemon: AppDaemon, prepare: (app: HttpApp) => void): Promise<HttpApp> {
  const app = createHttpApp(daemon.log);
  daemon.metrics.requests.count(app);
  prepare(app);
  await registerDaemonRoutes(app, daemon);
  return app;
}

/** Adds all routes of the local API. Contract section 4, "The local API". */
export async function registerDaemonRoutes(app: HttpApp, daemon: AppDaemon): Promise<void> {
  let document: object | null = null;
  const handlers: DaemonHandlers = {
    ...publishHandlers(daemon),
    ...deliveryHandlers(daemon),
    ...eventStreamHandlers(daemon),
    ...ownSandboxHandlers(daemon),
    ...managerHandlers(daemon),
    ...processHandlers(daemon),
    ...contextHandlers(daemon),
    ...forwardedFileHandlers(daemon),
    ...daemonHealthHandlers(daemon),
    // Loaded and made when somebody asks for it, which few sandboxes see.
    async getDocument() {
      document ??= (await import('./openapi.ts')).daemonDocument();
      return document;
    },
  };
  await serve<typeof DAEMON_ROUTES>(app, DAEMON_ROUTES, handlers, (row: DaemonRoute) => ({
    access: row.access,
    is_light: row.is_light === true,
  }));
  await app.ready();
}
