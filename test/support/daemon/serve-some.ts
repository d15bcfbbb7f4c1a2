import type { HttpApp } from '../../../src/base/http/app.ts';
import { serve } from '../../../src/base/http/serve.ts';
import { DAEMON_ROUTES } from '../../../src/contract/routes/daemon.ts';
import type { Routes } from '../../../src/contract/routes/route.ts';
import type { DaemonHandlers } from '../../../src/daemon/api/handlers.ts';

/** Serves those of the daemon's routes that handlers are given for, without its guard. */
export async function serveSome(app: HttpApp, handlers: Partial<DaemonHandlers>): Promise<void> {
  const ids = Object.keys(handlers) as (keyof DaemonHandlers)[];
  const rows: Routes = Object.fromEntries(ids.map((id) => [id, DAEMON_ROUTES[id]]));
  await serve(app, rows, handlers as never, () => ({}));
}
