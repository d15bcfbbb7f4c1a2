import type { DAEMON_ROUTES } from '../../contract/routes/daemon.ts';
import type { PathsOf } from './paths-of.ts';

/** The routes of a daemon by path and method. In the package the build puts what its document says in this place. */
export type paths = PathsOf<typeof DAEMON_ROUTES>;
