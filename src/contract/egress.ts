import { DELIVERY_CONCURRENCY } from './defaults.ts';

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
