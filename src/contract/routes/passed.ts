import type { ErrorCode } from '../errors.ts';
import { DAEMON_ROUTES } from './daemon.ts';
import type { DaemonRoute, ManagerRoute, Passed } from './route.ts';

/** A route of a sandbox's daemon that callers of the manager can reach. */
export interface PassedRoute extends ManagerRoute {
  /** The daemon checks them, which may be newer than the manager. */
  is_raw: true;
  /** The daemon's own row: where it is there, and the one scope that the daemon is asked to grant. */
  from: DaemonRoute & { access: keyof typeof SCOPES; passed: Passed };
}

const OWN = '/api/v1/';
const PLACE = '/api/v1/sandboxes/:sandbox_id/';
const SCOPES = { read: 'sandboxes:read', write: 'sandboxes:write' } as const;
/** What the manager may answer for any of them. */
const ERRORS = ['not_found', 'conflict', 'too_many_requests'] as const satisfies ErrorCode[];

type Rows = typeof DAEMON_ROUTES;
type PassedId = {
  [Id in keyof Rows]: Rows[Id] extends { passed: Passed } ? Id : never;
}[keyof Rows];
type PlaceOf<Path> = Path extends `${typeof OWN}${infer Rest}` ? `${typeof PLACE}${Rest}` : never;

/** The row at the manager of a daemon's row. */
export type PassedRow<Row extends DaemonRoute> = Omit<Row, 'path' | OfManager> &
  Pick<PassedRoute, OfManager> & { path: PlaceOf<Row['path']> };
type OfManager = 'access' | 'charge' | 'errors' | 'is_raw' | 'from';

/**
 * The daemon's routes that are passed through to sandboxes: all that say so, and nothing else can be reached. Contract
 * section 7, rows `…/contexts…` and `…/processes…, /files…, /webhook/deliveries…`.
 */
export const PASSED_ROUTES = Object.fromEntries(
  Object.entries<DaemonRoute>(DAEMON_ROUTES)
    .filter(([, { passed }]) => passed !== undefined)
    .map(([id, row]) => [id, passedRow(id, row)]),
) as { readonly [Id in PassedId]: PassedRow<Rows[Id]> };

/** The route at the manager, of a daemon's route that says `passed`. Throws where it is none that callers of sandboxes may have. */
export function passedRow(id: string, row: DaemonRoute): PassedRoute {
  const { access, path, errors = [] } = row;
  if ((access !== 'read' && access !== 'write') || !path.startsWith(OWN)) {
    throw new Error(`${id} cannot be passed through: ${access} ${path}`);
  }
  return {
    ...row,
    path: PLACE + path.slice(OWN.length),
    access: SCOPES[access],
    charge: 'request',
    is_raw: true,
    errors: [...errors, ...ERRORS],
    from: row as PassedRoute['from'],
  };
}
