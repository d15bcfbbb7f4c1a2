import { createHttpApp, type HttpApp } from '../../base/http/app.ts';
import type { RegisteredRoute } from '../../base/http/openapi.ts';
import type { Log } from '../../base/log.ts';
import { type ContextRouteContext, registerContextRoutes } from './context-routes.ts';
import { type DeliveryContext, registerDaemonDeliveryRoutes } from './delivery-routes.ts';
import { type EventStreamContext, registerEventStream } from './event-stream.ts';
import { type FileContext, registerForwardedFileRoutes } from './files/forwarded-routes.ts';
import { type HealthContext, registerDaemonHealthRoutes } from './health-routes.ts';
import { type ManagerRouteContext, registerManagerRoutes } from './manager-routes.ts';
import { registerProcessRoutes } from './process-routes.ts';
import { type PublishContext, registerPublishRoutes } from './publish/publish-routes.ts';
import { accessOf } from './route-access.ts';
import { registerDaemonSandboxRoutes, type SandboxContext } from './sandbox-routes.ts';

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

/** Adds all routes of the local API. Source: contract section 4, "The local API". */
export async function registerDaemonRoutes(app: HttpApp, daemon: AppDaemon): Promise<void> {
  const routes: RegisteredRoute[] = [];
  app.addHook('onRoute', ({ url, method, schema }) => {
    routes.push({ url, method, schema });
    const unlisted = [method].flat().find((each) => accessOf(each, url) === undefined);
    if (unlisted) throw new Error(`route-access.ts has no row for ${unlisted} ${url}`);
  });
  registerPublishRoutes(app, daemon);
  registerDaemonDeliveryRoutes(app, daemon);
  registerEventStream(app, daemon);
  registerDaemonSandboxRoutes(app, daemon);
  await registerManagerRoutes(app, daemon);
  await registerProcessRoutes(app, daemon);
  registerContextRoutes(app, daemon);
  await registerForwardedFileRoutes(app, daemon);
  registerDaemonHealthRoutes(app, daemon);
  registerDocument(app, routes);
  await app.ready();
}

/** The document is loaded and made when somebody asks for it, which few sandboxes see. */
function registerDocument(app: HttpApp, routes: readonly RegisteredRoute[]): void {
  let document: object | null = null;
  app.get('/openapi.json', async () => {
    document ??= (await import('./openapi.ts')).daemonDocument(routes);
    return document;
  });
}
