import { sleep } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { attemptRow, outcomeChange } from '../../outbox/delivery-lifecycle.ts';
import type { AttemptOutcome } from '../../outbox/store.ts';
import type { Database, Transaction } from '../database/database.ts';
import type { DatabaseClock } from '../database/database-clock-store.ts';
import { isDataError, reasonOf } from '../database/database-errors.ts';
import type { OwnedEndpoint } from './endpoint-store.ts';

/** Maximum number of outcomes in one commit. */
const BATCH_OUTCOMES = 100;
/** Pause before a failed commit is repeated. */
const RETRY_MS = 500;

/** How much of an outcome is stored. An outcome that the database rejects is stored with less. */
const DETAILS = ['whole', 'without its body', 'without its attempt'] as const;
type Detail = (typeof DETAILS)[number];

interface Waiting extends OwnedEndpoint {
  outcome: AttemptOutcome;
  resolve: (kept: boolean) => void;
}

/**
 * Records the outcomes of attempts, many in one commit. An outcome under an old fence is refused, because another
 * replica has taken over the endpoint. Outcomes wait while the database is unavailable. An outcome whose content the
 * database rejects is stored with less detail, separately from all others. Source: contract section 7.
 */
export class OutcomeStore {
  readonly #database: Database;
  readonly #clock: DatabaseClock;
  readonly #log: Log;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | null = null;
  #is_closed = false;
  #is_waiting = false;
  #refused = 0;

  constructor(database: Database, clock: DatabaseClock, log: Log) {
    this.#database = database;
    this.#clock = clock;
    this.#log = log;
  }

  /** The number of outcomes refused because the endpoint had another owner. */
  get refused(): number {
    return this.#refused;
  }

  /** Resolves to true once the outcome is on stable storage, or to false if it was refused. `outcome.id` is the row's id. */
  record(owned: OwnedEndpoint, outcome: AttemptOutcome): Promise<boolean> {
    return new Promise((resolve) => {
      this.#waiting.push({ ...owned, outcome, resolve });
      this.#writing ??= this.#writeAll();
    });
  }

  /** Waits for the current commit. If it fails, the outcomes are dropped, and their records sent again after the next start. */
  async close(): Promise<void> {
    this.#is_closed = true;
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      // Attempts that end in the same turn of the event loop share a commit.
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

  /** The ids of the rows that were written; null if the database is unavailable. */
  async #write(batch: Waiting[], detail: Detail = 'whole'): Promise<Set<number> | null> {
    try {
      const kept = await this.#database.db.transaction().execute((tx) => this.#writeIn(tx, batch, detail));
      this.#refused += batch.length - kept.size;
      this.#is_waiting = false;
      return kept;
    } catch (error) {
      if (isDataError(error)) return this.#writeApart(batch, detail, error);
      if (!this.#is_waiting) {
        this.#log.warn({ reason: reasonOf(error) }, 'outcomes of attempts are waiting for the database');
      }
      this.#is_waiting = true;
      return null;
    }
  }

  /** Isolates the outcome that the database rejects by halving the batch, and stores it with less detail. */
  async #writeApart(batch: Waiting[], detail: Detail, error: unknown): Promise<Set<number> | null> {
    const [first] = batch;
    if (batch.length === 1 && first) {
      const less = DETAILS[DETAILS.indexOf(detail) + 1];
      const facts = { record_id: first.outcome.id, reason: reasonOf(error), kept: less ?? 'nothing' };
      this.#log.error(facts, 'the database rejected the outcome of an attempt');
      return less ? this.#write(batch, less) : new Set();
    }
    const half = Math.ceil(batch.length / 2);
    const kept = new Set<number>();
    for (const part of [batch.slice(0, half), batch.slice(half)]) {
      const written = await this.#write(part, detail);
      if (!written) return null;
      for (const id of written) kept.add(id);
    }
    return kept;
  }

  async #writeIn(tx: Transaction, batch: Waiting[], detail: Detail): Promise<Set<number>> {
    const endpoints = [...new Set(batch.map(({ endpoint }) => endpoint))].sort();
    const query = tx
      .selectFrom('outbox_endpoints')
      .select(['endpoint', 'fence'])
      .where('endpoint', 'in', endpoints)
      .where('owner', 'is not', null);
    // The lock keeps the owner until the commit.
    const rows = await (this.#database.dialect === 'postgres' ? query.forKeyShare() : query).execute();
    const fences = new Map(rows.map(({ endpoint, fence }) => [endpoint, fence]));
    const valid = batch.filter(({ endpoint, fence }) => fences.get(endpoint) === fence);
    for (const { outcome } of valid) await this.#recordOutcome(tx, outcome);
    if (valid.length > 0 && detail !== 'without its attempt') {
      const outcomes = valid.map(({ outcome }) => outcome);
      await this.#addAttempts(tx, outcomes, detail === 'whole');
    }
    return new Set(valid.map(({ outcome }) => outcome.id));
  }

  async #recordOutcome(tx: Transaction, { id, attempt, decision }: AttemptOutcome): Promise<void> {
    const change = outcomeChange(decision, this.#clock.wallMs());
    await tx
      .updateTable('outbox')
      .set(({ eb }) => ({
        state: change.state,
        attempts: attempt,
        failures: eb('failures', '+', 1),
        due_ms: change.due_ms,
        probe_ms: change.probe_ms ?? 0,
        finished_at_ms: change.finished_ms,
      }))
      .where('id', '=', id)
      .where('state', '=', 'pending')
      // Makes a repeated commit harmless: it is not known whether a failed one reached the disk.
      .where('attempts', '<', attempt)
      .execute();
  }

  async #addAttempts(tx: Transaction, outcomes: AttemptOutcome[], has_bodies: boolean): Promise<void> {
    await tx
      .insertInto('outbox_attempts')
      .values(
        outcomes.map((outcome) => {
          // Due times are wall time in this engine.
          const row = { record_id: outcome.id, ...attemptRow(outcome, 0) };
          return has_bodies ? row : { ...row, response_body: null, error_detail: null };
        }),
      )
      .onConflict((conflict) => conflict.columns(['record_id', 'attempt']).doNothing())
      .execute();
  }
}
