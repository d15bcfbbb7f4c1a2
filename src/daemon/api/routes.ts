import type { HttpApp } from '../../base/http/app.ts';
import type { Daemon } from '../daemon.ts';
import { registerDeliveryRoutes } from './delivery-routes.ts';
import { registerEventStream } from './event-stream.ts';
import { registerHealthRoutes } from './health-routes.ts';
import { registerManagerRoutes } from './manager-routes.ts';
import { registerProcessRoutes } from './process-routes.ts';
import { registerPublishRoutes } from './publish-routes.ts';
import { accessOf } from './route-access.ts';
import { registerSandboxRoutes } from './sandbox-routes.ts';

/** The local API. Source: contract section 4, "The local API". */
export async function registerRoutes(app: HttpApp, daemon: Daemon): Promise<void> {
  app.addHook('onRoute', ({ url, method }) => {
    const forgotten = [method].flat().find((each) => accessOf(each, url) === undefined);
    if (forgotten) throw new Error(`route-access.ts does not say who may ask ${forgotten} ${url}`);
  });
  registerPublishRoutes(app, daemon);
  registerDeliveryRoutes(app, daemon);
  registerEventStream(app, daemon);
  registerSandboxRoutes(app, daemon);
  await registerManagerRoutes(app, daemon);
  await registerProcessRoutes(app, daemon);
  registerHealthRoutes(app, daemon);
  await app.ready();
}
