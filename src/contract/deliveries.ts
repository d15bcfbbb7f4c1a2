/** What the API tells about records and their deliveries. Source: contract sections 3 and 4. */

export const DELIVERY_STATES = ['pending', 'delivered', 'failed', 'expired', 'foreign'] as const;

export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** Why an attempt got no usable answer. */
export const ATTEMPT_ERRORS = ['dns', 'connect', 'tls', 'timeout', 'reset', 'protocol', 'blocked'] as const;

export type AttemptError = (typeof ATTEMPT_ERRORS)[number];

/** One attempt as kept. `status` is null where no response head arrived, `error` null where one did. */
export interface AttemptView {
  attempt: number;
  started_at: string;
  duration_ms: number;
  status: number | null;
  error: AttemptError | null;
  next_attempt_at: string | null;
  response_body: string | null;
}

/** A record in a list of deliveries. Times are RFC 3339 UTC with milliseconds, or null. */
export interface DeliveryView {
  event_id: string;
  event_type: string;
  sequence: number | null;
  state: DeliveryState;
  created_at: string;
  finished_at: string | null;
  next_attempt_at: string | null;
}

/** One record with its exact body, its static headers and every attempt. */
export interface DeliveryDetail extends DeliveryView {
  body: string;
  headers: Record<string, string>;
  attempts: AttemptView[];
}

export interface DeliveryPage<View = DeliveryView> {
  deliveries: View[];
  next_cursor: string | null;
}

/** What the manager tells of a record: one team has those of many sandboxes. Source: contract section 7. */
export type OfSandbox<View> = View & { sandbox_id: string };

/** How many records are in each state, and the bytes of those that are not delivered. */
export type OutboxCounts = Record<DeliveryState, number> & { bytes: number };
