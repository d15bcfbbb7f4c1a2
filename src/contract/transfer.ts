/**
 * The ways on which bytes of sandboxes pass through the manager. Contract section 7, "Transfer".
 * - `ports`: servers in sandboxes, WebSockets and other upgrades among them
 * - `files`: files and archives, both ways, and what watches them
 * - `processes`: starts, input, output, terminals and followers of processes and contexts
 * - `events`: what a sandbox's daemon tells of its events and deliveries
 * - `webhooks`: a sandbox's webhooks, through the manager or from its outbox
 */
export const TRANSFER_WAYS = ['ports', 'files', 'processes', 'events', 'webhooks'] as const;

/** One of `TRANSFER_WAYS`. */
export type TransferWay = (typeof TRANSFER_WAYS)[number];
