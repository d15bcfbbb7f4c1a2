import { createHash } from 'node:crypto';
import type { Queries, Transaction } from '../database/database.ts';

/** The state of a key. `under_way`: its claim is in progress; `conflict`: it was used with another body. */
export type KnownKey =
  | { outcome: 'new' | 'under_way' | 'conflict' }
  | { outcome: 'answered'; sandbox_id: string; status_code: number; answer: unknown };

/** A claim with an idempotency key; keys are per team. */
export interface ClaimKey {
  team_id: string;
  key: string;
  /** SHA-256 of the request's body. */
  body_hash: string;
}

/** Idempotency keys of claims with the stored answers. Source: contract section 7, `Idempotency-Key`. */
export class IdempotencyStore {
  readonly #db: Queries;

  constructor(db: Queries) {
    this.#db = db;
  }

  /** The state of a key, inside the claim's transaction with the team's row locked. Answers from before `since_ms` expire. */
  async lookUp(tx: Transaction, { team_id, key, body_hash }: ClaimKey, since_ms: number): Promise<KnownKey> {
    const row = await tx
      .selectFrom('idempotency_keys')
      .selectAll()
      .where('team_id', '=', team_id)
      .where('key', '=', key)
      .executeTakeFirst();
    if (!row) return { outcome: 'new' };
    const is_answered = row.answer !== null && row.status_code !== null;
    if (is_answered && row.created_at_ms < since_ms) {
      await tx.deleteFrom('idempotency_keys').where('team_id', '=', team_id).where('key', '=', key).execute();
      return { outcome: 'new' };
    }
    if (row.body_hash !== body_hash) return { outcome: 'conflict' };
    if (row.answer === null || row.status_code === null) return { outcome: 'under_way' };
    const { sandbox_id, status_code } = row;
    return { outcome: 'answered', sandbox_id, status_code, answer: JSON.parse(row.answer) };
  }

  /** Stores a new key for a claim that begins in the same transaction. */
  async reserve(tx: Transaction, claim: ClaimKey, sandbox_id: string, now_ms: number): Promise<void> {
    await tx
      .insertInto('idempotency_keys')
      .values({ ...claim, sandbox_id, status_code: null, answer: null, created_at_ms: now_ms })
      .execute();
  }

  /** Stores the claim's answer, in the transaction that completes it. */
  async storeAnswer(
    tx: Transaction,
    sandbox_id: string,
    status_code: number,
    answer: unknown,
  ): Promise<void> {
    await tx
      .updateTable('idempotency_keys')
      .set({ status_code, answer: JSON.stringify(answer) })
      .where('sandbox_id', '=', sandbox_id)
      .execute();
  }

  /** Deletes up to `limit` answered keys from before `before_ms`; returns how many. */
  async purge(before_ms: number, limit: number): Promise<number> {
    const old = this.#db
      .selectFrom('idempotency_keys')
      .select(['team_id', 'key'])
      .where('created_at_ms', '<', before_ms)
      .where('answer', 'is not', null)
      .limit(limit);
    const { numDeletedRows } = await this.#db
      .deleteFrom('idempotency_keys')
      .where(({ eb, refTuple }) => eb(refTuple('team_id', 'key'), 'in', old.$asTuple('team_id', 'key')))
      .executeTakeFirst();
    return Number(numDeletedRows);
  }
}

/** SHA-256 of a parsed body, in hex: equal requests have equal hashes. */
export function bodyHash(body: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(body ?? {}))
    .digest('hex');
}
