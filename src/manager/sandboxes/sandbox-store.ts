import type { ExpressionBuilder, Selectable, Updateable } from 'kysely';
import type { ManagedStatus } from '../../contract/sandboxes.ts';
import type { Database, Queries, Transaction } from '../database/database.ts';
import { isDiskFull } from '../database/database-errors.ts';
import type { Operation, SandboxTable, Tables } from '../database/tables.ts';
import { TRANSITIONS, type Verb } from './transitions.ts';

export type ManagedSandboxRow = Selectable<SandboxTable>;

/** Who carries out an operation, and until when nobody else may. */
export interface OperationLease {
  owner: string;
  until_ms: number;
}

export interface SandboxFilter {
  status?: ManagedStatus | undefined;
  template_id?: string | undefined;
  paused?: boolean | undefined;
  limit: number;
  offset: number;
}

/** Why a transition could not begin. `busy`: another is under way; `status`: not from the one it is in. */
export type TransitionRefusal = { refused: 'not_found' | 'busy' | 'status'; status: ManagedStatus | null };

type Where = ExpressionBuilder<Tables, 'sandboxes'>;

/** Records of sandboxes and their transitions. Those that are gone are seen by nobody but the housekeeping. */
export class SandboxStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  get db(): Queries {
    return this.#database.db;
  }

  /** Runs one transaction. */
  write<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result> {
    return this.db.transaction().execute(work);
  }

  /** The same for what a deletion writes: on a full disk it has the room that is kept for it. */
  async writeFreeing<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        return await this.write(work);
      } catch (error) {
        if (!isDiskFull(error) || !this.#database.ballast?.use()) throw error;
      }
    }
  }

  /** Keeps that room. */
  restoreBallast(): void {
    this.#database.ballast?.keep();
  }

  /** Lets one transaction at a time admit something for a team. */
  async lockTeam(tx: Transaction, team_id: string): Promise<void> {
    // On SQLite whoever writes is alone already.
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

  async insert(tx: Transaction, row: ManagedSandboxRow): Promise<void> {
    await tx.insertInto('sandboxes').values(row).execute();
  }

  /** A team's sandbox; null where there is none, or where it is another team's. */
  async find(
    queries: Queries,
    sandbox_id: string,
    team_id: string | null,
  ): Promise<ManagedSandboxRow | null> {
    let query = queries
      .selectFrom('sandboxes')
      .selectAll()
      .where('sandbox_id', '=', sandbox_id)
      .where('deleted_at_ms', 'is', null);
    if (team_id !== null) query = query.where('team_id', '=', team_id);
    return (await query.executeTakeFirst()) ?? null;
  }

  /** A page of a team's sandboxes, newest first, and how many match. */
  async list(team_id: string, filter: SandboxFilter): Promise<{ rows: ManagedSandboxRow[]; count: number }> {
    const matching = (where: Where) =>
      where.and([
        where('team_id', '=', team_id),
        where('deleted_at_ms', 'is', null),
        ...(filter.status === undefined ? [] : [where('status', '=', filter.status)]),
        ...(filter.template_id === undefined ? [] : [where('template_id', '=', filter.template_id)]),
        ...(filter.paused === undefined ? [] : [where('status', filter.paused ? '=' : '!=', 'paused')]),
      ]);
    const rows = await this.db
      .selectFrom('sandboxes')
      .selectAll()
      .where(matching)
      .orderBy('created_at_ms', 'desc')
      .orderBy('sandbox_id', 'desc')
      .limit(filter.limit)
      .offset(filter.offset)
      .execute();
    const { count } = await this.db
      .selectFrom('sandboxes')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where(matching)
      .executeTakeFirstOrThrow();
    return { rows, count };
  }

  /** How many sandboxes there are in each status. */
  async countByStatus(): Promise<{ status: ManagedStatus; count: number }[]> {
    return this.db
      .selectFrom('sandboxes')
      .select(['status', ({ fn }) => fn.countAll<number>().as('count')])
      .where('deleted_at_ms', 'is', null)
      .groupBy('status')
      .execute();
  }

  /** Begins a transition: from then on no other can, until it is ended. */
  async beginTransition(
    tx: Transaction,
    verb: Verb,
    { sandbox_id, team_id, now_ms }: { sandbox_id: string; team_id: string | null; now_ms: number },
    { owner, until_ms }: OperationLease,
  ): Promise<ManagedSandboxRow | TransitionRefusal> {
    const { from, operation, during } = TRANSITIONS[verb];
    let update = tx
      .updateTable('sandboxes')
      .set({
        operation,
        operation_owner: owner,
        operation_until_ms: until_ms,
        updated_at_ms: now_ms,
        ...(during ? { status: during } : {}),
      })
      .where('sandbox_id', '=', sandbox_id)
      .where('deleted_at_ms', 'is', null)
      .where('operation', 'is', null)
      .where('status', 'in', from);
    if (team_id !== null) update = update.where('team_id', '=', team_id);
    return (await update.returningAll().executeTakeFirst()) ?? this.whyRefused(tx, sandbox_id, team_id);
  }

  /** Why nothing can begin. */
  async whyRefused(queries: Queries, sandbox_id: string, team_id: string | null): Promise<TransitionRefusal> {
    const row = await this.find(queries, sandbox_id, team_id);
    if (!row) return { refused: 'not_found', status: null };
    return { refused: row.operation === null ? 'status' : 'busy', status: row.status };
  }

  /** Changes a sandbox with which nothing is under way, in one step; null where that cannot be. */
  async changeIdle(
    tx: Transaction,
    sandbox_id: string,
    from: readonly ManagedStatus[],
    changes: Updateable<SandboxTable>,
  ): Promise<ManagedSandboxRow | null> {
    const row = await tx
      .updateTable('sandboxes')
      .set(changes)
      .where('sandbox_id', '=', sandbox_id)
      .where('deleted_at_ms', 'is', null)
      .where('operation', 'is', null)
      .where('status', 'in', from)
      .returningAll()
      .executeTakeFirst();
    return row ?? null;
  }

  /** Ends an operation with what has come of it; null where it is no longer the owner's. */
  async endOperation(
    tx: Transaction,
    sandbox_id: string,
    operation: Operation,
    owner: string,
    changes: Updateable<SandboxTable>,
  ): Promise<ManagedSandboxRow | null> {
    const row = await tx
      .updateTable('sandboxes')
      .set({ ...changes, operation: null, operation_owner: null, operation_until_ms: null })
      .where('sandbox_id', '=', sandbox_id)
      .where('operation', '=', operation)
      .where('operation_owner', '=', owner)
      .returningAll()
      .executeTakeFirst();
    return row ?? null;
  }

  /** Removes a sandbox of which nobody was told, and the key of its claim. */
  async drop(tx: Transaction, sandbox_id: string, owner: string): Promise<void> {
    const dropped = await tx
      .deleteFrom('sandboxes')
      .where('sandbox_id', '=', sandbox_id)
      .where('operation', 'in', ['claiming', 'copying'])
      .where('operation_owner', '=', owner)
      .executeTakeFirst();
    if (dropped.numDeletedRows === 0n) return;
    await tx.deleteFrom('idempotency_keys').where('sandbox_id', '=', sandbox_id).execute();
  }

  /** Says that operations are being carried out still. */
  async renew(sandbox_ids: string[], { owner, until_ms }: OperationLease): Promise<void> {
    if (sandbox_ids.length === 0) return;
    await this.db
      .updateTable('sandboxes')
      .set({ operation_until_ms: until_ms })
      .where('sandbox_id', 'in', sandbox_ids)
      .where('operation_owner', '=', owner)
      .execute();
  }

  /** Sandboxes with which something is under way. */
  async withOperation(): Promise<ManagedSandboxRow[]> {
    return this.db.selectFrom('sandboxes').selectAll().where('operation', 'is not', null).execute();
  }

  /** Makes an operation that was found somebody else's; null where another was faster. */
  async takeOver(
    row: ManagedSandboxRow,
    { owner, until_ms }: OperationLease,
  ): Promise<ManagedSandboxRow | null> {
    const taken = await this.db
      .updateTable('sandboxes')
      .set({ operation_owner: owner, operation_until_ms: until_ms })
      .where('sandbox_id', '=', row.sandbox_id)
      .where('operation', '=', row.operation)
      .where('operation_owner', '=', row.operation_owner)
      .where('operation_until_ms', '=', row.operation_until_ms)
      .returningAll()
      .executeTakeFirst();
    return taken ?? null;
  }

  /** Sandboxes that are up and with which nothing is under way, to be compared with the runtime. */
  async listUp(): Promise<ManagedSandboxRow[]> {
    return this.db
      .selectFrom('sandboxes')
      .selectAll()
      .where('status', 'in', ['running', 'paused'])
      .where('operation', 'is', null)
      .execute();
  }

  /** Whose time to be paused or deleted has come, but for the `deferred`, and when the next one's does. */
  async expired(
    now_ms: number,
    limit: number,
    deferred: string[],
  ): Promise<{ rows: ManagedSandboxRow[]; next_ms: number | null }> {
    const rows = await this.db
      .selectFrom('sandboxes')
      .selectAll()
      .where('operation', 'is', null)
      .$if(deferred.length > 0, (query) => query.where('sandbox_id', 'not in', deferred))
      .where((where) =>
        where.or([
          where.and([where('status', '=', 'running'), where('expires_at_ms', '<=', now_ms)]),
          where.and([
            where('status', 'in', TRANSITIONS.delete.from),
            where('hard_expires_at_ms', '<=', now_ms),
          ]),
        ]),
      )
      .limit(limit)
      .execute();
    const next = await this.db
      .selectFrom('sandboxes')
      .select(({ fn }) => fn.min('expires_at_ms').as('soft_ms'))
      .where('status', '=', 'running')
      .where('expires_at_ms', '>', now_ms)
      .executeTakeFirst();
    const hard = await this.db
      .selectFrom('sandboxes')
      .select(({ fn }) => fn.min('hard_expires_at_ms').as('hard_ms'))
      .where('deleted_at_ms', 'is', null)
      .where('status', '!=', 'terminating')
      .where('hard_expires_at_ms', '>', now_ms)
      .executeTakeFirst();
    const times = [next?.soft_ms, hard?.hard_ms].filter((time) => typeof time === 'number');
    return { rows, next_ms: times.length > 0 ? Math.min(...times) : null };
  }

  /** Forgets sandboxes that are gone since before, some at a time; tells how many. */
  async purge(before_ms: number, limit: number): Promise<number> {
    const gone = this.db
      .selectFrom('sandboxes')
      .select('sandbox_id')
      .where('deleted_at_ms', '<', before_ms)
      .limit(limit);
    const { numDeletedRows } = await this.db
      .deleteFrom('sandboxes')
      .where('sandbox_id', 'in', gone)
      .executeTakeFirst();
    return Number(numDeletedRows);
  }
}
