/** Records and their deliveries as both APIs show them. Contract section 3, and section 4, "Deliveries". */

/** The states of a record. `pending` includes one that is being retried; `foreign` was left by another sandbox. */
export const DELIVERY_STATES = ['pending', 'delivered', 'failed', 'expired', 'foreign'] as const;

/** One of `DELIVERY_STATES`. */
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** The states of a record that is no longer attempted, in which it can be replayed. */
export const FINAL_STATES = ['failed', 'expired', 'delivered'] as const satisfies DeliveryState[];

/** One of `FINAL_STATES`. */
export type FinalState = (typeof FINAL_STATES)[number];

/** The states of a record that was not delivered and is no longer attempted: those that make room in a full outbox. */
export const UNDELIVERED_STATES = ['failed', 'expired'] as const satisfies FinalState[];

/** One of `UNDELIVERED_STATES`. */
export type UndeliveredState = (typeof UNDELIVERED_STATES)[number];

/** Why an attempt got no response head; `blocked` is an address that the address guard refuses. */
export const ATTEMPT_ERRORS = ['dns', 'connect', 'tls', 'timeout', 'reset', 'protocol', 'blocked'] as const;

/** One of `ATTEMPT_ERRORS`. */
export type AttemptError = (typeof ATTEMPT_ERRORS)[number];

/**
 * Which refused attempts are made again: `transient`, 408, 425, 429 and 5xx; `any`, every status that is no 2xx, except 410.
 * What got no answer is tried again with both. Contract section 3, "Success, retry, terminal".
 */
export const WEBHOOK_RETRIES = ['transient', 'any'] as const;

/** One of `WEBHOOK_RETRIES`. */
export type WebhookRetry = (typeof WEBHOOK_RETRIES)[number];

/**
 * One attempt. `attempt` counts from 1; times are RFC 3339 UTC with milliseconds. `status` is null where no response
 * head arrived, `error` where one did. `error_detail` is one line, of at most 256 characters, that says why it failed;
 * null for a success. `response_body` holds at most 1 KiB.
 */
export interface AttemptView {
  attempt: number;
  started_at: string;
  duration_ms: number;
  status: number | null;
  error: AttemptError | null;
  error_detail: string | null;
  next_attempt_at: string | null;
  response_body: string | null;
}

/**
 * A record in a list of deliveries. Times are RFC 3339 UTC with milliseconds, or null where they are not set.
 * `last_status`, `last_error` and `last_error_detail` are those of its latest attempt, all null before the first.
 */
export interface DeliveryView {
  event_id: string;
  event_type: string;
  sequence: number | null;
  state: DeliveryState;
  created_at: string;
  finished_at: string | null;
  next_attempt_at: string | null;
  attempt_count: number;
  last_status: number | null;
  last_error: AttemptError | null;
  last_error_detail: string | null;
}

/** One record with its exact body, its static headers and every attempt, oldest first. */
export interface DeliveryDetail extends DeliveryView {
  body: string;
  headers: Record<string, string>;
  attempts: AttemptView[];
}

/** A page of records, newest first; `next_cursor` is null on the last page. */
export interface DeliveryPage<View = DeliveryView> {
  deliveries: View[];
  next_cursor: string | null;
}

/** A record as the manager shows it: a team sees those of many sandboxes. Contract section 7, "Sandboxes". */
export type OfSandbox<View> = View & { sandbox_id: string };

/** The number of records in each state, and the bytes of those that are not delivered. */
export type OutboxCounts = Record<DeliveryState, number> & { bytes: number };
