import type { HttpApp } from '../../base/http/app.ts';
import type { Daemon } from '../daemon.ts';
import { registerDaemonDeliveryRoutes } from './delivery-routes.ts';
import { registerEventStream } from './event-stream.ts';
import { registerDaemonHealthRoutes } from './health-routes.ts';
import { registerManagerRoutes } from './manager-routes.ts';
import { registerProcessRoutes } from './process-routes.ts';
import { registerPublishRoutes } from './publish-routes.ts';
import { accessOf } from './route-access.ts';
import { registerDaemonSandboxRoutes } from './sandbox-routes.ts';

/** Adds all routes of the local API. Source: contract section 4, "The local API". */
export async function registerDaemonRoutes(app: HttpApp, daemon: Daemon): Promise<void> {
  app.addHook('onRoute', ({ url, method }) => {
    const unlisted = [method].flat().find((each) => accessOf(each, url) === undefined);
    if (unlisted) throw new Error(`route-access.ts has no row for ${unlisted} ${url}`);
  });
  registerPublishRoutes(app, daemon);
  registerDaemonDeliveryRoutes(app, daemon);
  registerEventStream(app, daemon);
  registerDaemonSandboxRoutes(app, daemon);
  await registerManagerRoutes(app, daemon);
  await registerProcessRoutes(app, daemon);
  registerDaemonHealthRoutes(app, daemon);
  await app.ready();
}
