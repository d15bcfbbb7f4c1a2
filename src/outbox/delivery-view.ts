import { timestamp } from '../base/clock.ts';
import type { AttemptView, DeliveryDetail, DeliveryView } from '../contract/deliveries.ts';
import type { EventType } from '../contract/events.ts';
import type { AttemptError, DeliveryState } from '../contract/words.ts';

/** A record and its delivery as an engine reads them. Times are wall time in ms, `due_ms` is on the engine's clock. */
export interface DeliveryRow {
  event_id: string;
  event_type: string;
  sequence: number | null;
  state: DeliveryState;
  created_at_ms: number;
  finished_at_ms: number | null;
  due_ms: number | null;
  attempts: number;
  /** Of the attempt with the highest number; null where there was none, or its line is not kept. */
  last_status: number | null;
  last_error: AttemptError | null;
  last_error_detail: string | null;
}

/** A record with its request; `headers` is a JSON object. */
export interface DetailRow extends DeliveryRow {
  headers: string;
  body: string;
}

/** A line of the log of attempts, as every engine stores it. Times are wall time in ms. */
export interface AttemptRow {
  attempt: number;
  started_at_ms: number;
  duration_ms: number;
  status: number | null;
  error: AttemptError | null;
  /** Null for a success. */
  error_detail: string | null;
  next_attempt_at_ms: number | null;
  response_body: string | null;
}

/**
 * A record as both APIs list it. `to_wall_ms`: wall time minus the engine's clock. Pure. Source: contract section 4,
 * Deliveries.
 */
export function deliveryView(row: DeliveryRow, to_wall_ms: number): DeliveryView {
  return {
    event_id: row.event_id,
    // A later daemon's may be of a kind that is not known here.
    event_type: row.event_type as EventType,
    sequence: row.sequence,
    state: row.state,
    created_at: timestamp(row.created_at_ms),
    finished_at: optionalTimestamp(row.finished_at_ms),
    // A foreign record keeps its due time for when its sandbox comes back.
    next_attempt_at: row.due_ms && row.state === 'pending' ? timestamp(row.due_ms + to_wall_ms) : null,
    attempt_count: row.attempts,
    last_status: row.last_status,
    last_error: row.last_error,
    last_error_detail: row.last_error_detail,
  };
}

/** A record with its request and its attempts, which are in order. See `deliveryView`. */
export function deliveryDetail(row: DetailRow, attempts: AttemptRow[], to_wall_ms: number): DeliveryDetail {
  return {
    ...deliveryView(row, to_wall_ms),
    body: row.body,
    headers: JSON.parse(row.headers),
    attempts: attempts.map(attemptView),
  };
}

function attemptView(row: AttemptRow): AttemptView {
  return {
    attempt: row.attempt,
    started_at: timestamp(row.started_at_ms),
    // Whole as the outbox writes it; another program in the sandbox may have written a fraction.
    duration_ms: Math.round(row.duration_ms),
    status: row.status,
    error: row.error,
    error_detail: row.error_detail,
    next_attempt_at: optionalTimestamp(row.next_attempt_at_ms),
    response_body: row.response_body,
  };
}

function optionalTimestamp(wall_ms: number | null): string | null {
  return wall_ms === null ? null : timestamp(wall_ms);
}
