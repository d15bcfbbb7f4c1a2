import { sql } from 'kysely';
import type { Dimension, QuotaPolicy } from '../../contract/quotas.ts';
import type { Database, Queries, Transaction } from '../database/database.ts';

/** A policy that applies to a team, and whether it is the team's own. */
export interface HeldPolicy extends QuotaPolicy {
  source: 'team_override' | 'region_default';
}

/** What the node's sandboxes take: disk until they are gone, memory while they lease or hold it, the rest while they are active. */
export interface NodeUse {
  memory_mib: number;
  cpu_millis: number;
  disk_mib: number;
  active: number;
}

/** The use of no sandbox. */
export const NOTHING_TAKEN: NodeUse = { memory_mib: 0, cpu_millis: 0, disk_mib: 0, active: 0 };

/** A sandbox takes a place, memory and CPU in these states. Must be written like the condition of the index. */
const IS_ACTIVE = sql<boolean>`status in ('starting', 'running')`;
/** The setting that records that the legacy fields were applied. */
const SEEDED = 'quotas_seeded';
/** What a sandbox counts for that was made before disks had a bound. */
export const UNBOUNDED_DISK_MIB = 64;
/** Key of the advisory lock on the node's budget; any number that nothing else uses. */
const NODE_LOCK = 7_205_759;

/** Quota policies, and the usage that capacities are compared with. Every query rejects with `unavailable` if the database is. */
export class QuotaStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** The database, for reads outside of a transaction. */
  get db(): Queries {
    return this.#database.db;
  }

  /** The policies that apply to a team, by dimension: its own, otherwise the region's. */
  async policiesOf(queries: Queries, team_id: string): Promise<Map<Dimension, HeldPolicy>> {
    const rows = await queries
      .selectFrom('quota_policies')
      .select(['scope', 'dimension', 'limit_value', 'interval_ms', 'burst_value'])
      .where((where) =>
        where.or([
          where('scope', '=', 'region'),
          where.and([where('scope', '=', 'team'), where('team_id', '=', team_id)]),
        ]),
      )
      .orderBy('scope')
      .execute();
    // `region` sorts before `team`, so the team's own policy replaces it.
    return new Map(
      rows.map(({ scope, ...policy }) => {
        const dimension = policy.dimension as Dimension;
        return [
          dimension,
          { ...policy, dimension, source: scope === 'team' ? 'team_override' : 'region_default' },
        ];
      }),
    );
  }

  /** Sets a team's own policy. */
  async set(team_id: string, policy: QuotaPolicy): Promise<void> {
    await this.#put(this.db, { scope: 'team', team_id, source: 'operator' }, policy);
  }

  /** Removes a team's own policy, if it has one. */
  async unset(team_id: string, dimension: Dimension): Promise<void> {
    await this.db
      .deleteFrom('quota_policies')
      .where('scope', '=', 'team')
      .where('team_id', '=', team_id)
      .where('dimension', '=', dimension)
      .execute();
  }

  /**
   * Updates the region's policies to match the configuration, in one transaction. `listed` is `default_team_quotas`,
   * null if the configuration has none; `legacy` is what the legacy fields stand for. Legacy policies are only added at
   * the first start. They stay until the list names their dimension, or a list is given without the legacy field.
   * Returns whether this is the first start.
   */
  async reconcile(listed: QuotaPolicy[] | null, legacy: QuotaPolicy[]): Promise<{ is_first: boolean }> {
    return this.db.transaction().execute(async (tx) => {
      const { numInsertedOrUpdatedRows } = await tx
        .insertInto('settings')
        .values({ key: SEEDED, value: '1' })
        .onConflict((conflict) => conflict.doNothing())
        .executeTakeFirst();
      const is_first = numInsertedOrUpdatedRows === 1n;
      const named = (listed ?? []).map(({ dimension }) => dimension);
      const kept = listed === null ? null : legacy.map(({ dimension }) => dimension);
      await this.#removeDefaults(tx, named, kept);
      for (const policy of listed ?? []) {
        await this.#put(tx, { scope: 'region', team_id: '', source: 'config' }, policy);
      }
      for (const policy of is_first ? legacy : []) {
        if (named.includes(policy.dimension)) continue;
        await this.#put(tx, { scope: 'region', team_id: '', source: 'legacy' }, policy);
      }
      return { is_first };
    });
  }

  /** Removes the region's policies except those `named` and those legacy ones that are `kept` (null: all of them). */
  async #removeDefaults(tx: Transaction, named: Dimension[], kept: Dimension[] | null): Promise<void> {
    const rows = await tx
      .selectFrom('quota_policies')
      .select(['dimension', 'source'])
      .where('scope', '=', 'region')
      .execute();
    for (const { dimension, source } of rows) {
      const is_kept = source === 'legacy' && (kept === null || kept.includes(dimension as Dimension));
      if (is_kept || named.includes(dimension as Dimension)) continue;
      await tx
        .deleteFrom('quota_policies')
        .where('scope', '=', 'region')
        .where('dimension', '=', dimension)
        .execute();
    }
  }

  async #put(
    queries: Queries,
    key: { scope: 'region' | 'team'; team_id: string; source: string },
    { dimension, limit_value, interval_ms, burst_value }: QuotaPolicy,
  ): Promise<void> {
    const values = { limit_value, interval_ms, burst_value, source: key.source };
    await queries
      .insertInto('quota_policies')
      .values({ ...key, dimension, ...values })
      .onConflict((conflict) => conflict.columns(['scope', 'team_id', 'dimension']).doUpdateSet(values))
      .execute();
  }

  /** The number of active sandboxes of a team: committed ones, and those written by the transaction itself. */
  async activeSandboxes(queries: Queries, team_id: string): Promise<number> {
    const { active } = await queries
      .selectFrom('sandboxes')
      .select(({ fn }) => fn.countAll<number>().as('active'))
      .where('team_id', '=', team_id)
      .where(IS_ACTIVE)
      .executeTakeFirstOrThrow();
    return active;
  }

  /** The same, with a lock: until the transaction ends, no other can count the team's sandboxes this way. */
  async lockedActiveSandboxes(tx: Transaction, team_id: string): Promise<number> {
    // On SQLite a transaction holds the write lock already.
    if (this.#database.dialect === 'sqlite') return this.activeSandboxes(tx, team_id);
    const { rows } = await sql<{
      active: number;
    }>`select locked_active_sandboxes(${team_id}) as active`.execute(tx);
    return (rows[0] as { active: number }).active;
  }

  /** Locks the node's budget until the transaction ends. */
  async lockNode(tx: Transaction): Promise<void> {
    // On SQLite a transaction holds the write lock already.
    if (this.#database.dialect === 'sqlite') return;
    await sql`select pg_advisory_xact_lock(${NODE_LOCK}::bigint)`.execute(tx);
  }

  /** The resources taken by all sandboxes except `except_id`. */
  async nodeUse(queries: Queries, except_id: string): Promise<NodeUse> {
    // Until the daemon of a deleted one has ended, its memory is taken.
    const memory_mib = sql`case when ${IS_ACTIVE} then memory_mib
      when status = 'paused' or operation = 'cleaning' then coalesce(held_mib, memory_mib) end`;
    return queries
      .selectFrom('sandboxes')
      .select([
        sql<number>`cast(coalesce(sum(${memory_mib}), 0) as bigint)`.as('memory_mib'),
        sql<number>`cast(coalesce(sum(case when ${IS_ACTIVE} then cpu_millis end), 0) as bigint)`.as(
          'cpu_millis',
        ),
        sql<number>`cast(count(case when ${IS_ACTIVE} then 1 end) as bigint)`.as('active'),
        sql<number>`cast(coalesce(sum(coalesce(disk_mib, ${UNBOUNDED_DISK_MIB})), 0) as bigint)`.as(
          'disk_mib',
        ),
      ])
      .where('deleted_at_ms', 'is', null)
      .where('sandbox_id', '!=', except_id)
      .executeTakeFirstOrThrow();
  }
}
