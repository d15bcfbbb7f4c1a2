import { type ExpressionBuilder, type RawBuilder, type Selectable, sql, type UpdateObject } from 'kysely';
import type { ManagedStatus } from '../../contract/words.ts';
import type { Database, Queries, Transaction } from '../database/database.ts';
import type { Moment } from '../database/database-clock-store.ts';
import { isDiskFull } from '../database/database-errors.ts';
import type { SandboxTable, Tables } from '../database/tables.ts';
import { addPairs, hasPair, removePairs } from './metadata-store.ts';
import { TRANSITIONS, type TransitionRefusal, type Verb } from './transitions.ts';

/** A row of the table `sandboxes`. */
export type ManagedSandboxRow = Selectable<SandboxTable>;

/** A row as lists read it: an environment may be as large as a hundred rows. */
export type ListedSandboxRow = Omit<ManagedSandboxRow, 'env_sealed'>;

const LISTED = [
  ...(['sandbox_id', 'team_id', 'template_id', 'status', 'operation', 'operation_owner'] as const),
  ...(['operation_until_ms', 'operation_fence', 'auto_resume', 'pod_name', 'persistence'] as const),
  ...(['runtime_generation', 'memory_mib', 'cpu_millis', 'resources', 'metadata', 'disk_mib'] as const),
  ...(['bandwidth', 'network', 'webhook_url', 'webhook_secret_sealed', 'watch_dir', 'watch_ignore'] as const),
  ...(['webhook_events', 'env_names_sealed', 'ttl_s', 'hard_ttl_s', 'idle_ttl_s', 'expires_at_ms'] as const),
  ...([
    'hard_expires_at_ms',
    'idle_expires_at_ms',
    'claimed_at_ms',
    'created_at_ms',
    'updated_at_ms',
  ] as const),
  ...(['deleted_at_ms', 'node', 'held_mib', 'webhook_retry'] as const),
];

/** The replica that carries out an operation, and until when no other may, in the time of the statement that begins it. */
export interface OperationLease {
  owner: string;
  until: RawBuilder<number>;
}

/** What a statement changes in a row. */
export type SandboxChanges = UpdateObject<Tables, 'sandboxes'>;

/** An operation as it was begun or taken over: nobody else has its number. */
export type NumberedOperation = Pick<ManagedSandboxRow, 'sandbox_id' | 'operation' | 'operation_fence'>;

/** The same, with the end of the lease that it was read with. */
export type LeasedOperation = NumberedOperation & Pick<ManagedSandboxRow, 'operation_until_ms'>;

/** Of which sandbox a transition begins (`team_id` null: of any team), and when. */
interface TransitionStart {
  sandbox_id: string;
  team_id: string | null;
  at: Moment;
  /** Not null: only if its idle time has ended by then. */
  idle_by_ms?: number | null;
  /** Only if no operation has begun since that one. */
  after_fence?: number;
}

/** Which sandboxes a list holds; what is undefined does not filter. */
interface SandboxFilter {
  status?: ManagedStatus | undefined;
  template_id?: string | undefined;
  paused?: boolean | undefined;
  /** Pairs `key:text`, all of which a sandbox must have in its metadata. */
  metadata?: string[] | undefined;
  limit: number;
  offset: number;
}

/** A page of sandboxes, and the number of all that match. */
interface SandboxPage {
  rows: ListedSandboxRow[];
  count: number;
}

type Where = ExpressionBuilder<Tables, 'sandboxes'>;

/** Rows of sandboxes and their transitions. Rows of deleted sandboxes are visible to `findKept` and the housekeeping alone. */
export class SandboxStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** For reads outside of a transaction. */
  get db(): Queries {
    return this.#database.db;
  }

  /** Runs one transaction. */
  write<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result> {
    return this.db.transaction().execute(work);
  }

  /** Runs a transaction that frees resources: on a full disk it may use the space reserved for deletions. */
  async writeFreeing<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        return await this.write(work);
      } catch (error) {
        if (!isDiskFull(error) || !this.#database.ballast?.use()) throw error;
      }
    }
  }

  /** Reserves that space again, if it was used. */
  restoreBallast(): void {
    this.#database.ballast?.keep();
  }

  /** Locks a team's row until the transaction ends, so that one claim of the team is admitted at a time. */
  async lockTeam(tx: Transaction, team_id: string): Promise<void> {
    // SQLite has one writer at a time anyway.
    if (this.#database.dialect === 'sqlite') return;
    const lock = () =>
      tx.selectFrom('teams').select('team_id').where('team_id', '=', team_id).forUpdate().executeTakeFirst();
    if (await lock()) return;
    await tx
      .insertInto('teams')
      .values({ team_id })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    await lock();
  }

  /** Adds a sandbox; with a lease of its operation that begins now. */
  async insert(tx: Transaction, row: ManagedSandboxRow, lease: OperationLease | null = null): Promise<void> {
    const { owner: operation_owner, until: operation_until_ms } = lease ?? {};
    const leased = lease ? { ...row, operation_owner, operation_until_ms } : row;
    await tx.insertInto('sandboxes').values(leased).execute();
    await addPairs(tx, row);
  }

  /** A team's sandbox (`team_id` null: any team's), or null if there is none. */
  async find(
    queries: Queries,
    sandbox_id: string,
    team_id: string | null,
  ): Promise<ManagedSandboxRow | null> {
    const row = await this.findKept(queries, sandbox_id, team_id);
    return row?.deleted_at_ms === null ? row : null;
  }

  /** The same, also if it is deleted, for as long as its row is kept. */
  async findKept(
    queries: Queries,
    sandbox_id: string,
    team_id: string | null,
  ): Promise<ManagedSandboxRow | null> {
    let query = queries.selectFrom('sandboxes').selectAll().where('sandbox_id', '=', sandbox_id);
    if (team_id !== null) query = query.where('team_id', '=', team_id);
    return (await query.executeTakeFirst()) ?? null;
  }

  /** A page of a team's sandboxes, newest first, and the number of all that match. Source: contract section 7. */
  async list(team_id: string, filter: SandboxFilter): Promise<SandboxPage> {
    const { db, dialect } = this.#database;
    // An expression, so that SQLite takes the index of the pairs rather than every sandbox of the team.
    const ofTeam = (where: Where) =>
      filter.metadata?.length && dialect === 'sqlite'
        ? sql<boolean>`team_id || '' = ${team_id}`
        : where('team_id', '=', team_id);
    const matching = (where: Where) =>
      where.and([
        ofTeam(where),
        where('deleted_at_ms', 'is', null),
        ...(filter.status === undefined ? [] : [where('status', '=', filter.status)]),
        ...(filter.template_id === undefined ? [] : [where('template_id', '=', filter.template_id)]),
        ...(filter.paused === undefined ? [] : [where('status', filter.paused ? '=' : '!=', 'paused')]),
        ...(filter.metadata ?? []).map((pair) => hasPair(where, team_id, pair)),
      ]);
    // Rows are read for the page alone: whatever is passed over is passed over in the index.
    const page = db
      .selectFrom('sandboxes')
      .select('sandbox_id')
      .where(matching)
      .orderBy('created_at_ms', 'desc')
      .orderBy('sandbox_id', 'desc')
      .limit(filter.limit)
      .offset(filter.offset);
    // As an array, because PostgreSQL would rather read a whole table of some thousand rows than join a page to it.
    const inPage = (where: Where, ids: typeof page) =>
      dialect === 'sqlite' ? where('sandbox_id', 'in', ids) : sql<boolean>`sandbox_id = any(array(${ids}))`;
    const rows = await db
      .selectFrom('sandboxes')
      .select(LISTED)
      .where((where) => inPage(where, page))
      .orderBy('created_at_ms', 'desc')
      .orderBy('sandbox_id', 'desc')
      .execute();
    const { count } = await db
      .selectFrom('sandboxes')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where(matching)
      .executeTakeFirstOrThrow();
    return { rows, count };
  }

  /** The number of sandboxes in each status, of all teams. */
  async countByStatus(): Promise<{ status: ManagedStatus; count: number }[]> {
    return this.db
      .selectFrom('sandboxes')
      .select(['status', ({ fn }) => fn.countAll<number>().as('count')])
      .where('deleted_at_ms', 'is', null)
      .groupBy('status')
      .execute();
  }

  /** Begins a transition; until `endOperation` no other can begin. */
  async beginTransition(
    tx: Transaction,
    verb: Verb,
    { sandbox_id, team_id, at: { now }, idle_by_ms = null, after_fence }: TransitionStart,
    { owner, until }: OperationLease,
  ): Promise<ManagedSandboxRow | TransitionRefusal> {
    const { from, operation, during } = TRANSITIONS[verb];
    let update = tx
      .updateTable('sandboxes')
      .set({
        operation,
        operation_owner: owner,
        operation_until_ms: until,
        operation_fence: laterFence(now),
        updated_at_ms: now,
        ...(during ? { status: during } : {}),
      })
      .where('sandbox_id', '=', sandbox_id)
      .where('deleted_at_ms', 'is', null)
      .where('operation', 'is', null)
      .where('status', 'in', from);
    if (team_id !== null) update = update.where('team_id', '=', team_id);
    if (idle_by_ms !== null) update = update.where('idle_expires_at_ms', '<=', idle_by_ms);
    if (after_fence !== undefined) update = update.where('operation_fence', '=', after_fence);
    return (await update.returningAll().executeTakeFirst()) ?? this.whyRefused(tx, sandbox_id, team_id);
  }

  /** Why no transition can begin, to be asked after `beginTransition` or `changeIdle` found none. */
  async whyRefused(queries: Queries, sandbox_id: string, team_id: string | null): Promise<TransitionRefusal> {
    const row = await this.findKept(queries, sandbox_id, team_id);
    if (row?.deleted_at_ms !== null) {
      return { refused: 'not_found', status: null, deleted_at_ms: row?.deleted_at_ms ?? null };
    }
    return { refused: row.operation === null ? 'status' : 'busy', status: row.status };
  }

  /** Changes a sandbox without an operation in one step; null if it has one, or another status than `from`. */
  async changeIdle(
    tx: Transaction,
    sandbox_id: string,
    from: readonly ManagedStatus[],
    changes: SandboxChanges,
  ): Promise<ManagedSandboxRow | null> {
    const changing = tx
      .updateTable('sandboxes')
      .set(changes)
      .where('sandbox_id', '=', sandbox_id)
      .where('deleted_at_ms', 'is', null)
      .where('operation', 'is', null)
      .where('status', 'in', from)
      .returningAll();
    return (await changing.executeTakeFirst()) ?? null;
  }

  /** Ends an operation and applies its changes; null if another replica has taken it over. */
  async endOperation(
    tx: Transaction,
    held: NumberedOperation,
    changes: SandboxChanges,
  ): Promise<ManagedSandboxRow | null> {
    const row = await tx
      .updateTable('sandboxes')
      .set({ ...changes, operation: null, operation_owner: null, operation_until_ms: null })
      .where((where) => isHeld(where, held))
      .returningAll()
      .executeTakeFirst();
    return row ?? null;
  }

  /** Notes that what ran of a deleted sandbox has ended, so that nothing of it need be here when its cleanup is repeated. */
  async noteEnd(tx: Transaction, held: NumberedOperation): Promise<void> {
    await tx
      .updateTable('sandboxes')
      .set({ operation: 'removing' })
      .where((where) => isHeld(where, held))
      .execute();
  }

  /** Whether nobody has taken an operation over; until the transaction ends nobody can. */
  async isHeld(tx: Transaction, held: NumberedOperation): Promise<boolean> {
    const found = tx
      .selectFrom('sandboxes')
      .select('sandbox_id')
      .where((where) => isHeld(where, held));
    // SQLite has one writer at a time anyway.
    const locked = this.#database.dialect === 'sqlite' ? found : found.forUpdate();
    return (await locked.executeTakeFirst()) !== undefined;
  }

  /** Ends the cleanup of a deleted sandbox; null if another replica has taken it over. */
  async endDeletion(
    tx: Transaction,
    held: NumberedOperation,
    changes: SandboxChanges,
  ): Promise<ManagedSandboxRow | null> {
    const row = await this.endOperation(tx, held, changes);
    if (row) await removePairs(tx, held.sandbox_id);
    return row;
  }

  /** Removes a sandbox that no caller has seen, together with the idempotency key of its claim; false if it is another's. */
  async drop(tx: Transaction, held: NumberedOperation): Promise<boolean> {
    const dropped = await tx
      .deleteFrom('sandboxes')
      .where((where) => isHeld(where, held))
      .executeTakeFirst();
    if (dropped.numDeletedRows === 0n) return false;
    const { sandbox_id } = held;
    await freeKey(tx, sandbox_id);
    await tx.deleteFrom('event_positions').where('sandbox_id', '=', sandbox_id).execute();
    return true;
  }

  /** Makes a claim or copy the cleanup of a deletion, and its idempotency key free; null if it is another replica's. */
  async beginUndo(
    tx: Transaction,
    held: NumberedOperation,
    { now }: Moment,
  ): Promise<ManagedSandboxRow | null> {
    const { operation, during } = TRANSITIONS.delete;
    const undoing = tx
      .updateTable('sandboxes')
      .set({ operation, updated_at_ms: now, ...(during ? { status: during } : {}) })
      .where((where) => isHeld(where, held))
      .returningAll();
    const row = (await undoing.executeTakeFirst()) ?? null;
    if (row) await freeKey(tx, row.sandbox_id);
    return row;
  }

  /** Extends the leases of operations that are still being carried out; returns those that the owner still has. */
  async renew(sandbox_ids: string[], { owner, until }: OperationLease): Promise<NumberedOperation[]> {
    if (sandbox_ids.length === 0) return [];
    return this.db
      .updateTable('sandboxes')
      .set({ operation_until_ms: until })
      .where('sandbox_id', 'in', sandbox_ids)
      .where('operation_owner', '=', owner)
      .returning(['sandbox_id', 'operation', 'operation_fence'])
      .execute();
  }

  /** Lets the lease of an operation end when one that begins now does, unless it was renewed meanwhile. */
  async limitLease(row: LeasedOperation, { until }: OperationLease): Promise<void> {
    await this.db
      .updateTable('sandboxes')
      .set({ operation_until_ms: until })
      .where((where) => isHeld(where, row))
      .where('operation_until_ms', '=', row.operation_until_ms)
      .execute();
  }

  /** Transfers an abandoned operation to a new owner; null if another replica was faster. */
  async takeOver(
    row: LeasedOperation,
    { owner, until }: OperationLease,
    { now }: Moment,
  ): Promise<ManagedSandboxRow | null> {
    const taking = this.db
      .updateTable('sandboxes')
      .set({
        operation_owner: owner,
        operation_until_ms: until,
        operation_fence: laterFence(now),
      })
      .where((where) => isHeld(where, row))
      .where('operation_until_ms', '=', row.operation_until_ms)
      .returningAll();
    return (await taking.executeTakeFirst()) ?? null;
  }
}

/** At least the time, so that it is higher than what sandboxes remember also in a database that was restored. */
function laterFence(now: RawBuilder<number>) {
  return sql<number>`case when operation_fence < ${now} then ${now} else operation_fence + 1 end`;
}

/** The number alone decides: a cleanup changes its name as it proceeds. */
function isHeld(where: Where, { sandbox_id, operation_fence }: NumberedOperation) {
  return where.and([
    where('sandbox_id', '=', sandbox_id),
    where('operation', 'is not', null),
    where('operation_fence', '=', operation_fence),
  ]);
}

/** Lets the idempotency key of a sandbox's claim be used anew. */
async function freeKey(tx: Transaction, sandbox_id: string): Promise<void> {
  await tx.deleteFrom('idempotency_keys').where('sandbox_id', '=', sandbox_id).execute();
}
