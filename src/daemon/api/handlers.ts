import type { Handlers } from '../../base/http/serve.ts';
import type { DAEMON_ROUTES } from '../../contract/routes/daemon.ts';

/** A handler for each route of the daemon. */
export type DaemonHandlers = Handlers<typeof DAEMON_ROUTES>;
