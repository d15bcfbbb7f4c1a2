import { type RawBuilder, sql } from 'kysely';
import { PRUNE_LEAST_MS } from '../../contract/defaults.ts';
import type { Database } from '../database/database.ts';
import type { DatabaseClock } from '../database/database-clock-store.ts';
import type { Tables } from '../database/tables.ts';

/** Rows that one transaction removes: others wait for its locks, and SQLite's writers for all of it. */
const PAGE = 1_000;

/** What of a team makes it one that is still there. */
const OF_A_TEAM: readonly (keyof Tables)[] = [
  ...(['sandboxes', 'tokens', 'quota_policies', 'leases', 'usage_windows', 'events', 'outbox'] as const),
  ...(['transfer_counts', 'idempotency_keys'] as const),
];

/** What is kept for ever unless an operator removes it. Each verb counts, or removes in pages beside running managers. */
export class PruneStore {
  /** What is kept of later times is not pruned. */
  readonly last_ms: number;
  readonly #database: Database;

  constructor(database: Database, clock: DatabaseClock) {
    this.#database = database;
    this.last_ms = clock.wallMs() - PRUNE_LEAST_MS;
  }

  /** Closed windows that end before a time, and were recorded before it: what came late is kept until it is as old. */
  windows(before_ms: number, is_dry: boolean): Promise<number> {
    return this.#prune(
      'usage_windows',
      'window_id',
      sql`window_end_ms <= ${before_ms} and recorded_at_ms < ${before_ms}`,
      is_dry,
    );
  }

  /** Tokens that were revoked before a time. */
  tokens(before_ms: number, is_dry: boolean): Promise<number> {
    return this.#prune('tokens', 'token_id', sql`revoked_at_ms < ${before_ms}`, is_dry);
  }

  /** Teams of which nothing else is kept. One that comes back gets its row again. */
  teams(is_dry: boolean): Promise<number> {
    const nothing = OF_A_TEAM.map(
      (table) => sql`not exists (select 1 from ${sql.table(table)} as had where had.team_id = teams.team_id)`,
    );
    return this.#prune('teams', 'team_id', sql.join(nothing, sql` and `), is_dry);
  }

  async #prune(
    table: 'usage_windows' | 'tokens' | 'teams',
    id: string,
    condition: RawBuilder<unknown>,
    is_dry: boolean,
  ): Promise<number> {
    const { db } = this.#database;
    const name = sql.table(table);
    if (is_dry) {
      const { rows } = await sql<{ count: number }>`
        select count(*) as count from ${name} where ${condition}`.execute(db);
      return Number(rows[0]?.count ?? 0);
    }
    for (let removed = 0; ; ) {
      const page = await db.transaction().execute((tx) =>
        sql`delete from ${name} where ${sql.ref(id)} in
          (select ${sql.ref(id)} from ${name} where ${condition} limit ${PAGE})`.execute(tx),
      );
      const count = Number(page.numAffectedRows ?? 0);
      removed += count;
      if (count < PAGE) return removed;
    }
  }
}
