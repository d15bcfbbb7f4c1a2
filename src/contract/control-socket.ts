import { DELIVERY_CONCURRENCY } from './defaults.ts';

/**
 * What a request on the control socket may reach, weakest first; each scope includes the ones before it.
 * Contract section 4, "The control socket".
 */
export const CONTROL_SCOPES = ['read', 'write', 'manage'] as const;

/** One of `CONTROL_SCOPES`. */
export type ControlScope = (typeof CONTROL_SCOPES)[number];

/**
 * The request header, in lower case, that names the scope of a request on the control socket. Without it only routes
 * that require no token are served. Contract section 4, "The control socket".
 */
export const CONTROL_SCOPE_HEADER = 'x-control-scope';

/** Whether the scope in a header includes the required one. */
export function includesScope(given: string | string[] | undefined, needed: ControlScope): boolean {
  return CONTROL_SCOPES.indexOf(given as ControlScope) >= CONTROL_SCOPES.indexOf(needed);
}

/**
 * How the webhooks of a sandbox's daemon leave: `direct`, over connections of the daemon's own, or through the `manager`,
 * over tunnels that it opens to the daemon. Contract section 4, "GET /sandbox/egress".
 */
export const WEBHOOK_EGRESSES = ['direct', 'manager'] as const;

/** One of `WEBHOOK_EGRESSES`. */
export type WebhookEgress = (typeof WEBHOOK_EGRESSES)[number];

/** The path below `/api/v1` on which the manager opens tunnels. */
export const EGRESS_PATH = '/sandbox/egress';

/** The protocol that a connection is upgraded to: the daemon sends one CONNECT request on it. */
export const EGRESS_PROTOCOL = 'sandboxd-egress';

/** Most tunnels of a sandbox, for each manager: one for each attempt in flight. */
export const EGRESS_TUNNELS_MAX = DELIVERY_CONCURRENCY;

/** How a manager reads the life of a sandbox from its daemon. Contract section 4, GET `/sandbox/events`. */

/** The path of the records, below `/api/v1`. */
export const LIFECYCLE_PATH = '/sandbox/events';

/** Most records of an answer, which must stay below what the manager reads of one. */
export const LIFECYCLE_PAGE_RECORDS = 100;

/** Ports of a sandbox, which the manager reaches through the daemon. Contract section 4, "GET /sandbox/ports/{port}". */

/** The path below `/api/v1` whose last segment is the port. */
export const PORTS_PATH = '/sandbox/ports';

/** The protocol that a connection is upgraded to: from then on it is the connection to the port. */
export const PORT_PROTOCOL = 'sandboxd-port';

/** The TCP port that a text names; null if it is no whole number from 1 to 65 535. */
export function portOf(text: string): number | null {
  return /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535 ? Number(text) : null;
}
