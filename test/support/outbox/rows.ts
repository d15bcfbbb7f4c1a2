import type { EventType } from '../../../src/contract/events.ts';
import type { Keep } from '../../../src/outbox/sqlite/rows/finished-records.ts';
import type { SqliteStore } from '../../../src/outbox/sqlite/rows/sqlite-store.ts';
import type { Append, AppendResult, AttemptOutcome } from '../../../src/outbox/store.ts';
import type { Decision } from '../../../src/webhook/retry.ts';
import { draft } from '../in-process-store.ts';
import { delivered } from './writer.ts';

/** Makes a change in a transaction of its own. */
export function change<Result>(rows: SqliteStore, make: () => Result): Result {
  rows.begin();
  const result = make();
  rows.commit();
  return result;
}

/** Commits events with these payloads. */
export function append(rows: SqliteStore, ...payloads: string[]): AppendResult {
  return change(rows, () => rows.added.append({ drafts: payloads.map((payload) => draft(payload)) }));
}

/** The event ids that an append was given. */
export function idsOf(result: AppendResult): string[] {
  return 'records' in result ? result.records.map(({ event_id }) => event_id) : [];
}

/** The sequences that an append was given. */
export function sequencesOf(result: AppendResult): number[] {
  return 'records' in result ? result.records.map(({ sequence }) => sequence) : [];
}

/** Commits the outcome of an attempt. */
export function settle(rows: SqliteStore, id: number, decision: Decision, attempt = 1): void {
  const outcome: AttemptOutcome = { ...delivered(id), attempt, decision };
  change(rows, () => rows.outcomes.record([outcome]));
}

/** A rule of retention. */
export function keep(
  state: Keep['state'],
  keep_ms: number,
  keep_records: number,
  keep_bytes = 2 ** 40,
): Keep {
  return { state, keep_ms, keep_records, keep_bytes };
}

/** An append of one event of a type. */
export function event(event_type: EventType, payload = '{}'): Append {
  return { drafts: [{ event_type, happened_at_ms: 0, payload }] };
}
