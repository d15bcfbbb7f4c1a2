import { Buffer } from 'node:buffer';
import { DELIVERY_WINDOW_MS } from '../contract/defaults.ts';
import type { AttemptError } from '../contract/deliveries.ts';
import { EVENT_TYPES } from '../contract/events.ts';
import { isWhole } from './rows.ts';

/** An attempt that a sandbox's own daemon made. Times are wall time in ms. */
export interface HandedOverAttempt {
  attempt: number;
  started_at_ms: number;
  duration_ms: number;
  status: number | null;
  error: AttemptError | null;
  next_attempt_at_ms: number | null;
  response_body: string | null;
}

/**
 * A record that a stopped daemon had not delivered: what is sent as it was stored, and where its delivery stands.
 * `…_in_ms` counts from the moment it was read, 0 where that time has come; whoever takes it over adds its own clock.
 */
export interface HandedOver {
  event_id: string;
  event_type: string;
  /** Whose daemon made it. */
  sandbox_id: string;
  sequence: number;
  /** The static headers, `X-Service-Signature` among them; those of each attempt are made by whoever sends it. */
  headers: Record<string, string>;
  body: string;
  /** The headers' text as stored, which is what `mac` is over: see `isAuthentic`. */
  headers_text: string;
  /** What authenticates it, 32 bytes; null where the daemon had no record key. */
  mac: Uint8Array | null;
  /** How many attempts were made: the next one's number is one more. */
  attempts: number;
  /** Failed attempts of the present window: what its backoff counts. */
  failures: number;
  /** Wall time of its commit. */
  created_at_ms: number;
  /** When it may be attempted next; 0 where it was never tried. */
  due_in_ms: number;
  /** When it may be the endpoint's probe; 0 where it was never tried. */
  probe_in_ms: number;
  /** What is left of its window of 24 h; 0 where one last attempt is owed. */
  deadline_in_ms: number;
  attempt_log: HandedOverAttempt[];
}

/** A record's row, as far as it is handed over. Whoever ran in the sandbox may have written it: see `handedOver`. */
export interface PendingRow {
  id: number;
  event_id: string;
  event_type: string;
  sandbox_id: string;
  sequence: number;
  headers: string;
  body: string;
  checksum: number;
  mac: unknown;
  created_at_ms: number;
  deadline_ms: number;
  due_ms: number;
  probe_ms: number | null;
  attempts: number;
  failures: number;
}

/** No other header was ever stored by a daemon, so no other is sent on its behalf. Contract section 2. */
const HEADERS = new Set([
  'Content-Type',
  'User-Agent',
  'X-Service-Signature',
  'ce-specversion',
  'ce-id',
  'ce-source',
  'ce-type',
  'ce-time',
  'ce-sequence',
]);
const HEADER_VALUE = /^[\x20-\x7e]{0,2048}$/;
const EVENT_ID = /^evt_[0-9a-f-]{36}$/;
/** A request's body has a mebibyte at most, and an event's envelope and escapes add to it. */
const BODY_MAX_BYTES = 8 * 1024 * 1024;

/** Checks a row and gives the record, its times counted from `now_ms` of the store's clock; null where it is damaged. */
export function handedOver(
  row: PendingRow,
  attempt_log: HandedOverAttempt[],
  now_ms: number,
): HandedOver | null {
  if (typeof row.headers !== 'string' || typeof row.body !== 'string' || !isWhole(row)) return null;
  const { event_id, event_type, body } = row;
  const headers = headersOf(row.headers);
  const is_event = EVENT_TYPES.some((type) => type === event_type && type !== 'sandbox.deleted');
  if (!headers || !is_event || !EVENT_ID.test(event_id) || Buffer.byteLength(body) > BODY_MAX_BYTES)
    return null;
  const numbers = [row.sequence, row.attempts, row.failures, row.created_at_ms, row.deadline_ms, row.due_ms];
  if (!numbers.every((number) => Number.isSafeInteger(number) && number >= 0)) return null;
  const left_ms = (until_ms: number) => Math.max(0, Math.min(until_ms - now_ms, DELIVERY_WINDOW_MS));
  return {
    event_id,
    event_type,
    sandbox_id: row.sandbox_id,
    sequence: row.sequence,
    headers,
    body,
    headers_text: row.headers,
    mac: row.mac instanceof Uint8Array ? row.mac : null,
    attempts: row.attempts,
    failures: row.failures,
    created_at_ms: row.created_at_ms,
    due_in_ms: left_ms(row.due_ms),
    probe_in_ms: left_ms(row.probe_ms ?? 0),
    deadline_in_ms: left_ms(row.deadline_ms),
    attempt_log,
  };
}

function headersOf(text: string): Record<string, string> | null {
  let headers: unknown;
  try {
    headers = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof headers !== 'object' || headers === null) return null;
  const is_known = Object.entries(headers).every(
    ([name, value]) => HEADERS.has(name) && typeof value === 'string' && HEADER_VALUE.test(value),
  );
  return is_known ? (headers as Record<string, string>) : null;
}
