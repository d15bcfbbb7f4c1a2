import { createHttpApp, type HttpApp } from '../../base/http/app.ts';
import type { Log } from '../../base/log.ts';
import { type RouteSlices, registerDaemonRoutes } from './routes.ts';

/** What the application is made for: the slices of its routes, and the log of failures. */
export type AppDaemon = RouteSlices & { readonly log: Log };

/** Creates the daemon's application, ready to route. `prepare` adds the hooks that run before every route. */
export async function createApp(daemon: AppDaemon, prepare: (app: HttpApp) => void): Promise<HttpApp> {
  const app = createHttpApp(daemon.log);
  daemon.metrics.requests.count(app);
  prepare(app);
  await registerDaemonRoutes(app, daemon);
  return app;
}
