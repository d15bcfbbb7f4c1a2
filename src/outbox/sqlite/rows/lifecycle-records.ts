import { RETAIN_LIFECYCLE_RECORDS } from '../../../contract/defaults.ts';
import type { OutboxState } from './outbox-state.ts';
import { type AuthenticatedRecord, isAuthentic } from './record-mac.ts';
import { isWhole } from './rows.ts';
import type { Statements } from './statements.ts';

/** A record as it is stored, with all that shows whose it is. */
export interface LifecycleRow extends AuthenticatedRecord {
  /** CRC-32 of headers and body. */
  checksum: number;
  mac: Uint8Array;
}

/**
 * The `sandbox.*` records of a daemon with a record key, whose manager reads them for its feed. They are kept when their
 * deliveries are over, or where they never had one, until they are too many. Without a record key there are none.
 */
export class LifecycleRecords {
  readonly #sql: Statements;
  readonly #state: OutboxState;

  constructor(sql: Statements, state: OutboxState) {
    this.#sql = sql;
    this.#state = state;
  }

  /** Up to `limit` records after a sequence, oldest first; those that this daemon did not make are left out. */
  after(sequence: number, limit: number): LifecycleRow[] {
    const { record_key } = this.#state;
    const { sandbox_id } = this.#state.row;
    if (record_key === null) return [];
    const found = this.#sql.lifecycleAfter.all({ sandbox_id, sequence, limit }) as LifecycleRow[];
    return found.filter((row) => isAuthentic(record_key, row) && isWhole(row));
  }

  /** Removes those without a delivery that are too many. Call it in the transaction that adds one. */
  trim(): void {
    if (this.#state.record_key === null) return;
    const { sandbox_id } = this.#state.row;
    const kept = RETAIN_LIFECYCLE_RECORDS;
    const sequence = (this.#sql.lifecycleSequence.get({ sandbox_id, kept }) as number | undefined) ?? 0;
    if (sequence > 0) this.#sql.trimLifecycle.run({ sandbox_id, sequence });
  }

  /** Removes those of another sandbox that have no delivery: nobody asks for them any more. */
  forget(sandbox_id: string | null): void {
    this.#sql.trimLifecycle.run({ sandbox_id, sequence: Number.MAX_SAFE_INTEGER });
  }
}
