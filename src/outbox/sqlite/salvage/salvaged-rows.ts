import {
  isWhole,
  type OwnState,
  recordSizeBytes,
  type StoredDelivery,
  type StoredRecord,
} from '../rows/rows.ts';
import type { FoundRow } from './damaged-outbox.ts';

/** The longest that a receiver may ask to be left alone: nothing is due later. */
const DUE_MAX_MS = 60 * 60 * 1000;
const STATES = new Set<OwnState>(['pending', 'delivered', 'failed', 'expired']);
const EVENT_ID = /^evt_[0-9a-f-]{36}$/;
const ATTEMPT_ERRORS = /^[a-z]{1,16}$/;

/** A record that is taken over: its columns are those that its headers, which are whole, tell. */
export interface SalvagedRecord extends StoredRecord {
  event_id: string;
  event_type: string;
  sequence: number;
  idempotency_key: string | null;
  created_at_ms: number;
}

/** One attempt of its log, in the order of the columns. */
export type SalvagedAttempt = [
  attempt: number,
  started_at_ms: number,
  duration_ms: number,
  status: number | null,
  error: string | null,
  next_attempt_at_ms: number | null,
  response_body: string | null,
  error_detail: string | null,
];

/** The record that a damaged row holds; null where its texts are not as they were stored. */
export function salvagedRecord(row: FoundRow & { id: number }): SalvagedRecord | null {
  const { id, headers, body, checksum, idempotency_key, created_at_ms, mac } = row;
  if (typeof headers !== 'string' || typeof body !== 'string' || typeof checksum !== 'number') return null;
  if (!isWhole({ headers, body, checksum })) return null;
  const named = parsed(headers);
  const [event_id, event_type, time] = ['ce-id', 'ce-type', 'ce-time'].map((name) => String(named[name]));
  const source = /^\/sandboxes\/(.*)$/s.exec(String(named['ce-source']))?.[1];
  const sequence = Number(named['ce-sequence']);
  const created_ms = isCount(created_at_ms) ? created_at_ms : Date.parse(time ?? '');
  const is_known = source !== undefined && EVENT_ID.test(event_id ?? '') && event_type !== undefined;
  if (!is_known || !isCount(sequence) || !isCount(created_ms)) return null;
  const sandbox_id = sandboxId(source, row.sandbox_id);
  if (sandbox_id === null) return null;
  return {
    id,
    event_id: event_id as string,
    event_type,
    sandbox_id,
    sequence,
    headers,
    body,
    checksum,
    idempotency_key: typeof idempotency_key === 'string' ? idempotency_key : null,
    created_at_ms: created_ms,
    mac: mac instanceof Uint8Array ? mac : null,
  };
}

function parsed(headers: string): Record<string, unknown> {
  try {
    return { ...JSON.parse(headers) };
  } catch {
    return {};
  }
}

function sandboxId(source: string, column: unknown): string | null {
  if (typeof column === 'string' && encodeURI(column) === source) return column;
  try {
    return decodeURI(source);
  } catch {
    return null;
  }
}

/** What became of a record, by the store's clock; null where the row cannot be what the outbox wrote. */
export function salvagedDelivery(
  row: FoundRow | null,
  record: SalvagedRecord,
  now: { now_ms: number; wall_ms: number; window_ms: number },
): StoredDelivery | null {
  if (!row) return null;
  const { state, deadline_ms, due_ms, probe_ms, finished_ms, finished_at_ms, attempts, failures } = row;
  const is_pending = state === 'pending';
  const has_state = STATES.has(state as OwnState) && isCount(attempts) && isCount(failures);
  if (!has_state || !isCount(deadline_ms)) return null;
  const common = {
    size_bytes: recordSizeBytes(record.headers, record.body),
    deadline_ms,
    attempts,
    failures,
  };
  if (!is_pending) {
    if (due_ms !== null || !isCount(finished_ms) || !isCount(finished_at_ms)) return null;
    const finished = { due_ms: null, probe_ms: null, finished_ms, finished_at_ms };
    return { state: state as OwnState, ...common, ...finished };
  }
  const is_over = deadline_ms <= now.now_ms && now.wall_ms - record.created_at_ms >= now.window_ms;
  const is_ahead = deadline_ms > now.now_ms && deadline_ms <= now.now_ms + now.window_ms;
  const latest_ms = now.now_ms + DUE_MAX_MS;
  if (!isCount(due_ms) || due_ms > latest_ms || !(is_over || is_ahead)) return null;
  return {
    state: 'pending',
    ...common,
    due_ms,
    probe_ms: due_ms === 0 ? null : Math.min(isCount(probe_ms) ? probe_ms : due_ms, latest_ms),
    finished_ms: null,
    finished_at_ms: null,
  };
}

/** The log of a record's attempts, without those that cannot be what the outbox wrote. */
export function salvagedAttempts(rows: FoundRow[]): SalvagedAttempt[] {
  return rows.flatMap((row): SalvagedAttempt[] => {
    const { attempt, started_at_ms, duration_ms, status, error, next_attempt_at_ms } = row;
    const { response_body, error_detail } = row;
    if (!isCount(attempt) || !isCount(started_at_ms) || !isCount(duration_ms)) return [];
    return [
      [
        attempt,
        started_at_ms,
        duration_ms,
        isCount(status) && status <= 999 ? status : null,
        typeof error === 'string' && ATTEMPT_ERRORS.test(error) ? error : null,
        isCount(next_attempt_at_ms) ? next_attempt_at_ms : null,
        typeof response_body === 'string' ? response_body : null,
        typeof error_detail === 'string' ? error_detail : null,
      ],
    ];
  });
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
