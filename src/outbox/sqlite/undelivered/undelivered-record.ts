import { Buffer } from 'node:buffer';
import { traceparentOf } from '../../../base/http/trace-context.ts';
import { DELIVERY_WINDOW_MS } from '../../../contract/defaults.ts';
import { EVENT_TYPES } from '../../../contract/events.ts';
import { ATTEMPT_ERRORS } from '../../../contract/words.ts';
import { oneLine } from '../../../webhook/error-detail.ts';
import type { AttemptRow } from '../../delivery-view.ts';
import { isWhole } from '../rows/rows.ts';
import { isBelieved, type PendingRow, type Trust } from './belief.ts';

/**
 * A record that a stopped daemon had not delivered: what is sent as it was stored, and where its delivery stands.
 * `…_in_ms` counts from the moment it was read, 0 where that time has come; the receiving side adds its own clock.
 */
export interface UndeliveredRecord {
  event_id: string;
  event_type: string;
  sequence: number;
  /** The static headers, `X-Service-Signature` among them; the sender makes those of each attempt. */
  headers: Record<string, string>;
  body: string;
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
  attempt_log: AttemptRow[];
}

/** An event of a sandbox's own life, as its daemon has recorded it. */
export interface LifecycleEvent {
  event_id: string;
  event_type: string;
  sequence: number;
  body: string;
  /** Wall time of its commit. */
  created_at_ms: number;
}

/**
 * The result of a handover, page by page: `records` in commit order; only the last page says what could not be read.
 * `lost_records`: acknowledged records that are missing or damaged, at most; `trouble`: why, in one sentence for the
 * log. `set_aside`: records in the outbox that its daemon did not make. `lifecycle`, on the first page alone: the events
 * of the sandbox's own life, in order, delivered or not.
 */
export interface UndeliveredPage {
  records: UndeliveredRecord[];
  lifecycle?: LifecycleEvent[];
  lost_records: number;
  set_aside: number;
  trouble: string | null;
}

/** The stopped daemon's outbox, and whose records are handed over: not those of the parent of a fork. */
export interface HandOverSource extends Trust {
  /** Nothing that runs may reach it any more. */
  state_dir: string;
  /** The sequence after which the events of the sandbox's own life are read; absent: they are not. */
  lifecycle_after?: number;
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
  'traceparent',
]);
const HEADER_VALUE = /^[\x20-\x7e]{0,2048}$/;
const EVENT_ID = /^evt_[0-9a-f-]{36}$/;
/** A request's body has a mebibyte at most, and an event's envelope and escapes add to it. */
const BODY_MAX_BYTES = 8 * 1024 * 1024;

/** Beyond these a number says nothing that a daemon would have meant. */
const ATTEMPTS_MAX = 1_000_000;
const TIME_MAX_MS = 8_640_000_000_000_000;
const DURATION_MAX_MS = 24 * 60 * 60 * 1000;
const RESPONSE_BODY_MAX = 1024;

/** Why a row is not handed over: the disk has changed it, or its daemon did not make it. */
export type NotHandedOver = 'damaged' | 'not_believed';

/**
 * Checks a row and gives the record, its times counted from `now_ms` of the store's clock. What decides what is sent
 * must be the daemon's own; fields that only describe the state of its delivery are brought into range.
 */
export function undeliveredRecord(
  row: PendingRow,
  attempt_log: unknown[],
  now_ms: number,
  trust: Trust,
): UndeliveredRecord | NotHandedOver {
  if (typeof row.headers !== 'string' || typeof row.body !== 'string' || !isWhole(row)) return 'damaged';
  const { event_id, event_type, sequence, body, created_at_ms } = row;
  const headers = headersOf(row.headers);
  const is_event = EVENT_TYPES.some((type) => type === event_type && type !== 'sandbox.deleted');
  const is_numbered =
    isWithin(sequence, 1, Number.MAX_SAFE_INTEGER) && isWithin(created_at_ms, 0, TIME_MAX_MS);
  if (!headers || !is_event || !is_numbered || typeof event_id !== 'string' || !EVENT_ID.test(event_id)) {
    return 'not_believed';
  }
  if (Buffer.byteLength(body) > BODY_MAX_BYTES || !isBelieved(row, headers, trust)) return 'not_believed';
  const left_ms = (until_ms: unknown, otherwise: number) =>
    Number.isFinite(until_ms) && Number.isFinite(now_ms)
      ? Math.max(0, Math.min((until_ms as number) - now_ms, DELIVERY_WINDOW_MS))
      : otherwise;
  const attempts = isWithin(row.attempts, 0, ATTEMPTS_MAX) ? row.attempts : 0;
  return {
    event_id,
    event_type,
    sequence,
    headers,
    body,
    attempts,
    failures: isWithin(row.failures, 0, ATTEMPTS_MAX) ? row.failures : 0,
    created_at_ms,
    due_in_ms: left_ms(row.due_ms, 0),
    probe_in_ms: left_ms(row.probe_ms, 0),
    deadline_in_ms: left_ms(row.deadline_ms, DELIVERY_WINDOW_MS),
    attempt_log: attemptsOf(attempt_log, attempts),
  };
}

/** The attempts that can have been made, each once. */
function attemptsOf(log: unknown[], attempts: number): AttemptRow[] {
  const seen = new Map<number, AttemptRow>();
  for (const each of log as Record<keyof AttemptRow, unknown>[]) {
    const { attempt, started_at_ms, duration_ms, status, error, next_attempt_at_ms } = each;
    const { error_detail, response_body } = each;
    if (!isWithin(attempt, 1, attempts) || !isWithin(started_at_ms, 0, TIME_MAX_MS)) continue;
    seen.set(attempt, {
      attempt,
      started_at_ms,
      duration_ms: isWithin(duration_ms, 0, DURATION_MAX_MS) ? duration_ms : 0,
      status: isWithin(status, 100, 599) ? status : null,
      error: ATTEMPT_ERRORS.find((known) => known === error) ?? null,
      error_detail: typeof error_detail === 'string' ? oneLine(error_detail) : null,
      next_attempt_at_ms: isWithin(next_attempt_at_ms, 0, TIME_MAX_MS) ? next_attempt_at_ms : null,
      // PostgreSQL's texts have no such character.
      response_body:
        typeof response_body === 'string'
          ? response_body.slice(0, RESPONSE_BODY_MAX).replaceAll('\0', '\ufffd').toWellFormed()
          : null,
    });
  }
  return [...seen.values()];
}

function isWithin(value: unknown, least: number, most: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most;
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
  const { traceparent } = headers as { traceparent?: string };
  if (traceparent !== traceparentOf(traceparent)) return null;
  return is_known ? (headers as Record<string, string>) : null;
}
