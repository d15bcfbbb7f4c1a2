import { type RawBuilder, sql } from 'kysely';
import type { QuotaPolicy } from '../../contract/quotas.ts';
import type { Dimension } from '../../contract/words.ts';
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
  paused: number;
  /** The part of the memory that paused ones hold. */
  paused_memory_mib: number;
}

/** What is taken beside one sandbox. */
export interface TakenBeside {
  /** By all others. */
  node: NodeUse;
  /** By those of its team. */
  team: NodeUse;
  /** By itself; null while it is not recorded. */
  own: NodeUse | null;
}

/** The use of no sandbox. */
export const NOTHING_TAKEN: NodeUse = {
  ...{ memory_mib: 0, cpu_millis: 0, disk_mib: 0, active: 0, paused: 0, paused_memory_mib: 0 },
};

/** A sandbox takes a place, memory and CPU in these states. Must be written like the condition of the index. */
const IS_ACTIVE = sql<boolean>`status in ('starting', 'running')`;
/** The setting that records that the legacy fields were applied. */
const SEEDED = 'quotas_seeded';
/** What a sandbox counts for that was made before disks had a bound. */
export const UNBOUNDED_DISK_MIB = 64;
/** The memory that a sandbox takes. Until the daemon of a deleted one has ended, its memory is taken. */
const MEMORY = sql`case when ${IS_ACTIVE} then memory_mib
  when status = 'paused' or operation = 'cleaning' then coalesce(held_mib, memory_mib) end`;
const PAUSED_MEMORY = sql`case when status = 'paused' then coalesce(held_mib, memory_mib) end`;
const DISK = sql`coalesce(disk_mib, ${sql.lit(UNBOUNDED_DISK_MIB)})`;
const whole = (amount: RawBuilder<unknown>) => sql<number>`cast(coalesce(${amount}, 0) as bigint)`;
/** What sandboxes take, in sum. All of it is in the index `sandboxes_taken`, so that no row is read. */
const TAKEN = [
  whole(sql`sum(${MEMORY})`).as('memory_mib'),
  whole(sql`sum(case when ${IS_ACTIVE} then cpu_millis end)`).as('cpu_millis'),
  whole(sql`sum(${DISK})`).as('disk_mib'),
  whole(sql`count(case when ${IS_ACTIVE} then 1 end)`).as('active'),
  whole(sql`count(case when status = 'paused' then 1 end)`).as('paused'),
  whole(sql`sum(${PAUSED_MEMORY})`).as('paused_memory_mib'),
];
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

  /** What sandboxes take beside one of them: all others, and those of its team. */
  async nodeUse(
    queries: Queries,
    { sandbox_id, team_id }: { sandbox_id: string; team_id: string },
  ): Promise<TakenBeside> {
    const taken = queries.selectFrom('sandboxes').select(TAKEN).where('deleted_at_ms', 'is', null);
    const rows = await taken
      .select(sql.lit('node').as('whose'))
      .unionAll(taken.where('team_id', '=', team_id).select(sql.lit('team').as('whose')))
      .unionAll(taken.where('sandbox_id', '=', sandbox_id).select(sql.lit('own').as('whose')))
      .execute();
    const of = (name: string) => rows.find(({ whose }) => whose === name) as NodeUse;
    const own = of('own');
    return {
      node: sumOf(of('node'), own, -1),
      team: sumOf(of('team'), own, -1),
      // Every sandbox has a disk.
      own: own.disk_mib === 0 ? null : own,
    };
  }

  /** What teams hold of the node, the largest disk first. */
  async teamUses(
    queries: Queries,
    limit: number,
    offset: number,
  ): Promise<(NodeUse & { team_id: string })[]> {
    return queries
      .selectFrom('sandboxes')
      .select(['team_id', ...TAKEN])
      .where('deleted_at_ms', 'is', null)
      .groupBy('team_id')
      .orderBy('disk_mib', 'desc')
      .orderBy('team_id')
      .limit(limit)
      .offset(offset)
      .execute();
  }
}

/** The use of both together; with `times` -1, of the one without the other. */
export function sumOf(one: NodeUse, other: NodeUse, times = 1): NodeUse {
  return {
    memory_mib: one.memory_mib + times * other.memory_mib,
    cpu_millis: one.cpu_millis + times * other.cpu_millis,
    disk_mib: one.disk_mib + times * other.disk_mib,
    active: one.active + times * other.active,
    paused: one.paused + times * other.paused,
    paused_memory_mib: one.paused_memory_mib + times * other.paused_memory_mib,
  };
}
