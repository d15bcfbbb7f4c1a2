import type { Mark } from '../files/high-water.ts';
import type { OutboxRow } from '../rows/rows.ts';
import type { TakenOverRecords } from '../rows/taken-over-records.ts';
import { troubleOf } from '../store-errors.ts';
import type { DamagedOutbox } from './damaged-outbox.ts';
import { type SalvagedRecord, salvagedAttempts, salvagedDelivery, salvagedRecord } from './salvaged-rows.ts';

/** The current wall time and the delivery window, with which salvaged records are compared. */
export interface SalvageTime {
  wall_ms: number;
  window_ms: number;
}

/**
 * Takes over everything that can still be read from damaged outboxes, newest first: every record that is whole, with
 * its attempts, and the watched tree. A record that cannot be kept is left out alone. Call it between `begin` and
 * `commit` of the store; throws where the disk is in trouble, and may then be repeated. Returns how many of the records
 * taken over are pending.
 */
export function salvage(damaged: DamagedOutbox[], store: TakenOverRecords, time: SalvageTime): number {
  for (const rows of damaged[0]?.tree() ?? []) store.takeOverTree(rows);
  let pending = 0;
  for (const outbox of damaged) {
    for (const { record: row, delivery, attempts } of outbox.records()) {
      const record = salvagedRecord(row);
      if (!record || store.has(record.event_id)) continue;
      const known = salvagedDelivery(delivery, record, { ...time, now_ms: store.now() });
      const made = salvagedAttempts(attempts);
      if (takeOver(store, record, (each) => store.takeOver(each, known, made)) === 'pending') pending += 1;
    }
  }
  return pending;
}

function takeOver<State>(
  store: TakenOverRecords,
  record: SalvagedRecord,
  keep: (record: SalvagedRecord) => State | null,
): State | null {
  try {
    return store.wholly(() => {
      const state = keep(record);
      if (state !== null) {
        store.passOver(record);
        return state;
      }
      // Its id, or its idempotency key, is another record's: one of the two was changed by the damage.
      return keep({ ...record, id: store.newId(), idempotency_key: null });
    });
  } catch (error) {
    if (troubleOf(error) === 'away') throw error;
    return null;
  }
}

/** The numbers with which a new outbox continues damaged ones, as far as those and the mark show them. */
export function beginning(damaged: DamagedOutbox[], mark: Mark | null): Partial<OutboxRow> {
  for (const outbox of damaged) {
    const row = outbox.outbox();
    if (row && row.sandbox_id !== null) return row;
  }
  for (const outbox of damaged) {
    for (const { record: row } of outbox.newestFirst()) {
      const last = salvagedRecord(row);
      if (!last) continue;
      const { sandbox_id, sequence, id } = last;
      return { sandbox_id, next_sequence: sequence + 1, next_id: id + 1 };
    }
  }
  if (!mark) return {};
  const next = mark.sequence + 1;
  return { sandbox_id: mark.sandbox_id, next_sequence: next, next_id: next };
}

/** How many pending records damaged outboxes held, by their own counts and the mark. */
export function expectedPending(damaged: DamagedOutbox[], mark: Mark | null): number {
  const rows = damaged.flatMap((outbox) => outbox.outbox() ?? []);
  if (rows.length === 0) return mark?.pending ?? 0;
  const is_ours = mark !== null && rows.some(({ sandbox_id }) => sandbox_id === mark.sandbox_id);
  const next_sequence = Math.max(...rows.map((row) => row.next_sequence));
  const missing = is_ours ? Math.min(mark.pending, Math.max(0, mark.sequence + 1 - next_sequence)) : 0;
  return Math.max(...rows.map(({ pending }) => pending)) + missing;
}
