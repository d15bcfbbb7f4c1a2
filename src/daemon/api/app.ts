import { createHttpApp, type HttpApp } from '../../base/http/app.ts';
import type { Daemon } from '../daemon.ts';
import { registerDaemonRoutes } from './routes.ts';

/** Creates the daemon's application, ready to route. `prepare` adds the hooks that run before every route. */
export async function createApp(daemon: Daemon, prepare: (app: HttpApp) => void): Promise<HttpApp> {
  const app = createHttpApp(daemon.log);
  prepare(app);
  await registerDaemonRoutes(app, daemon);
  return app;
}
