import { createHttpApp, type HttpApp } from '../../base/http/app.ts';
import type { Daemon } from '../daemon.ts';
import { registerRoutes } from './routes.ts';

/** The daemon's application, ready to route; `prepare` adds what comes before every route. */
export async function createApp(daemon: Daemon, prepare: (app: HttpApp) => void): Promise<HttpApp> {
  const app = createHttpApp(daemon.log);
  prepare(app);
  await registerRoutes(app, daemon);
  return app;
}
