import type { API_ROUTES } from '../../contract/routes/manager.ts';
import type { PathsOf } from './paths-of.ts';

/** The routes of a manager by path and method. In the package the build puts what its document says in this place. */
export type paths = PathsOf<typeof API_ROUTES>;
