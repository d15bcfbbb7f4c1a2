import { type Clock, sleep } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { AttemptOutcome } from '../outbox/store.ts';
import type { DatabaseClock } from './clock-store.ts';
import type { Database, Transaction } from './database.ts';
import type { OwnedEndpoint } from './endpoint-store.ts';

/** So many outcomes share a commit. */
const BATCH_OUTCOMES = 100;
/** How long until a database that refused is asked again. */
const RETRY_MS = 500;

interface Waiting extends OwnedEndpoint {
  outcome: AttemptOutcome;
  resolve: (kept: boolean) => void;
}

/**
 * Keeps what attempts came to, many in one commit. An outcome under a fence that is no longer the endpoint's is
 * refused: another replica has taken over. Source: contract section 7.
 */
export class OutcomeWriter {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #database_clock: DatabaseClock;
  readonly #log: Log;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | null = null;
  #is_closed = false;
  #refused = 0;

  constructor(database: Database, clock: Clock, database_clock: DatabaseClock, log: Log) {
    this.#database = database;
    this.#clock = clock;
    this.#database_clock = database_clock;
    this.#log = log;
  }

  /** How many outcomes were refused because the endpoint had another owner. */
  get refused(): number {
    return this.#refused;
  }

  /** Resolves once it is on stable storage: true; or false where it was refused. `outcome.id` is the row's. */
  write(owned: OwnedEndpoint, outcome: AttemptOutcome): Promise<boolean> {
    return new Promise((resolve) => {
      this.#waiting.push({ ...owned, outcome, resolve });
      this.#writing ??= this.#writeAll();
    });
  }

  /** Waits for what is being written; what the database does not take now is sent again after the next start. */
  async close(): Promise<void> {
    this.#is_closed = true;
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      // What ends in the same turn of the event loop shares the commit.
      await new Promise((resolve) => setImmediate(resolve));
      const batch = this.#waiting.splice(0, BATCH_OUTCOMES);
      const kept = await this.#write(batch);
      if (kept) {
        for (const { outcome, resolve } of batch) resolve(kept.has(outcome.id));
      } else if (this.#is_closed) {
        break;
      } else {
        this.#waiting.unshift(...batch);
        await sleep(this.#clock, RETRY_MS);
      }
    }
    this.#writing = null;
  }

  /** The rows that were written; null where the database could not be reached. */
  async #write(batch: Waiting[]): Promise<Set<number> | null> {
    try {
      const kept = await this.#database.db.transaction().execute((tx) => this.#writeIn(tx, batch));
      this.#refused += batch.length - kept.size;
      return kept;
    } catch (error) {
      this.#log.warn({ reason: (error as Error).message }, 'outcomes of attempts wait for the database');
      return null;
    }
  }

  async #writeIn(tx: Transaction, batch: Waiting[]): Promise<Set<number>> {
    const endpoints = [...new Set(batch.map(({ endpoint }) => endpoint))].sort();
    const query = tx
      .selectFrom('outbox_endpoints')
      .select(['endpoint', 'fence'])
      .where('endpoint', 'in', endpoints)
      .where('owner', 'is not', null);
    // No other owner until this is committed.
    const rows = await (this.#database.dialect === 'postgres' ? query.forKeyShare() : query).execute();
    const fences = new Map(rows.map(({ endpoint, fence }) => [endpoint, fence]));
    const valid = batch.filter(({ endpoint, fence }) => fences.get(endpoint) === fence);
    for (const { outcome } of valid) await this.#settle(tx, outcome);
    if (valid.length > 0)
      await this.#addAttempts(
        tx,
        valid.map(({ outcome }) => outcome),
      );
    return new Set(valid.map(({ outcome }) => outcome.id));
  }

  async #settle(tx: Transaction, { id, attempt, decision }: AttemptOutcome): Promise<void> {
    const is_pending = decision.state === 'pending';
    await tx
      .updateTable('outbox')
      .set(({ eb }) => ({
        state: decision.state,
        attempts: attempt,
        failures: eb('failures', '+', 1),
        // 0 stands for a record that was never tried.
        due_ms: is_pending ? Math.max(1, decision.due_ms) : null,
        probe_ms: is_pending ? decision.probe_ms : 0,
        finished_at_ms: is_pending ? null : this.#database_clock.now(),
      }))
      .where('id', '=', id)
      .where('state', '=', 'pending')
      // Where it is not known whether the commit before this one reached the disk, it is made again.
      .where('attempts', '<', attempt)
      .execute();
  }

  async #addAttempts(tx: Transaction, outcomes: AttemptOutcome[]): Promise<void> {
    await tx
      .insertInto('outbox_attempts')
      .values(
        outcomes.map(({ id, decision, ...outcome }) => ({
          record_id: id,
          attempt: outcome.attempt,
          started_at_ms: outcome.started_at_ms,
          duration_ms: outcome.duration_ms,
          status: outcome.status,
          error: outcome.error,
          next_attempt_at_ms: decision.state === 'pending' ? decision.due_ms : null,
          response_body: outcome.response_body,
        })),
      )
      .onConflict((conflict) => conflict.columns(['record_id', 'attempt']).doNothing())
      .execute();
  }
}
