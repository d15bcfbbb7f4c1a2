import { type Selectable, sql } from 'kysely';
import type { FeedEventType } from '../../contract/events.ts';
import type { Position } from '../database/cursor.ts';
import type { Database, Transaction } from '../database/database.ts';
import { isAfter, isComplete } from '../database/position-store.ts';
import type { EventTable } from '../database/tables.ts';
import type { FeedSandbox } from '../sandboxes/ports.ts';

/** A row of `events`. */
export type EventRow = Selectable<EventTable>;

/** An event to be added. */
export type NewEvent = Omit<EventRow, 'seq' | 'xid'>;

/** Which events of a team a page holds. */
export interface FeedFilter {
  limit: number;
  event_type?: FeedEventType | undefined;
  sandbox_id?: string | undefined;
}

/** The feed's events, which are added and never changed, and how far each sandbox's are in it. Queries reject with `unavailable` if the database is. */
export class FeedStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Runs `work` in one transaction. */
  write<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result> {
    return this.#database.db.transaction().execute(work);
  }

  /** Adds events; those that are there already are left as they are. Returns those that were new. */
  async add(
    tx: Transaction,
    events: readonly NewEvent[],
  ): Promise<{ event_type: string; team_id: string }[]> {
    if (events.length === 0) return [];
    return tx
      .insertInto('events')
      .values([...events])
      .onConflict((conflict) => conflict.column('event_id').doNothing())
      .returning(['event_type', 'team_id'])
      .execute();
  }

  /** The sequence of the last event taken of a sandbox; 0 before the first. */
  async position(sandbox_id: string): Promise<number> {
    const row = await this.#database.db
      .selectFrom('event_positions')
      .select('sequence')
      .where('sandbox_id', '=', sandbox_id)
      .executeTakeFirst();
    return row?.sequence ?? 0;
  }

  /** Sets when a sandbox's daemon is to be asked; null: it need not be. */
  async expect(tx: Transaction, sandbox_id: string, due_ms: number | null): Promise<void> {
    await tx
      .insertInto('event_positions')
      .values({ sandbox_id, sequence: 0, due_ms })
      .onConflict((conflict) => conflict.column('sandbox_id').doUpdateSet({ due_ms }))
      .execute();
  }

  /** Notes that a sandbox's events up to `sequence` are taken; a position never goes back. */
  async advance(tx: Transaction, sandbox_id: string, sequence: number): Promise<void> {
    await tx
      .updateTable('event_positions')
      .set({ sequence })
      .where('sandbox_id', '=', sandbox_id)
      .where('sequence', '<', sequence)
      .execute();
  }

  /** Up to `limit` sandboxes whose daemon is to be asked by `now_ms`, longest due first. */
  async due(now_ms: number, limit: number): Promise<FeedSandbox[]> {
    return this.#database.db
      .selectFrom('event_positions')
      .innerJoin('sandboxes', 'sandboxes.sandbox_id', 'event_positions.sandbox_id')
      .select(['sandboxes.sandbox_id', 'sandboxes.team_id'])
      .where('due_ms', '<=', now_ms)
      .where('status', 'in', ['running', 'paused'])
      .where('operation', 'is', null)
      .orderBy('due_ms')
      .limit(limit)
      .execute();
  }

  /**
   * Locks a sandbox that nothing is done to, so that its events are added in order: what a transition adds it adds when
   * it ends. False where there is none.
   */
  async lockIdle(tx: Transaction, sandbox_id: string): Promise<boolean> {
    const idle = tx
      .selectFrom('sandboxes')
      .select('sandbox_id')
      .where('sandbox_id', '=', sandbox_id)
      .where('operation', 'is', null);
    const locked = this.#database.dialect === 'postgres' ? idle.forUpdate() : idle;
    return (await locked.executeTakeFirst()) !== undefined;
  }

  /** A team's events after a position, in an order in which none ever appears before one that was read. */
  async page(
    team_id: string,
    after: Position,
    { limit, event_type, sandbox_id }: FeedFilter,
  ): Promise<EventRow[]> {
    let query = this.#after(after).selectAll().where('team_id', '=', team_id).limit(limit);
    if (sandbox_id !== undefined) {
      query = query.where('sandbox_id', '=', sandbox_id);
      // Not by the index of kinds: of a team's events of one kind few are of one sandbox.
      if (event_type !== undefined) query = query.where(sql<boolean>`event_type || '' = ${event_type}`);
    } else if (event_type !== undefined) {
      query = query.where('event_type', '=', event_type);
    }
    return query.execute();
  }

  /** Whose the next events of all teams after a position are. */
  async teams(after: Position, limit: number): Promise<(Position & { team_id: string })[]> {
    return this.#after(after).select(['xid', 'seq', 'team_id']).limit(limit).execute();
  }

  /** The position after the last event that is in the feed now. */
  async end(): Promise<Position> {
    const { db, dialect } = this.#database;
    let query = db
      .selectFrom('events')
      .select(['xid', 'seq'])
      .orderBy('xid', 'desc')
      .orderBy('seq', 'desc')
      .limit(1);
    if (dialect === 'postgres') query = query.where(isComplete());
    return (await query.executeTakeFirst()) ?? { xid: 0, seq: 0 };
  }

  /** On PostgreSQL, rows of transactions that started after one that is still open are left for a later page. */
  #after(position: Position) {
    const { db, dialect } = this.#database;
    const query = db.selectFrom('events').where(isAfter(dialect, position)).orderBy('xid').orderBy('seq');
    if (dialect === 'sqlite') return query;
    return query.where(isComplete());
  }

  /** Removes up to `limit` events that were recorded before `before_ms`; returns how many. */
  async prune(before_ms: number, limit: number): Promise<number> {
    const { db } = this.#database;
    const old = db.selectFrom('events').select('seq').where('recorded_at_ms', '<', before_ms).limit(limit);
    const { numDeletedRows } = await db.deleteFrom('events').where('seq', 'in', old).executeTakeFirst();
    return Number(numDeletedRows);
  }

  /** Removes up to `limit` events of a team, the oldest first, but none of its last `kept`; returns how many. */
  async pruneTeam(team_id: string, kept: number, limit: number): Promise<number> {
    const { db, dialect } = this.#database;
    const of_team = db.selectFrom('events').where('team_id', '=', team_id);
    const newest = of_team.orderBy('xid', 'desc').orderBy('seq', 'desc');
    const last = await newest.select(['xid', 'seq']).offset(kept).limit(1).executeTakeFirst();
    if (!last) return 0;
    const oldest = of_team
      .select('seq')
      .where(sql<boolean>`not (${isAfter(dialect, last)})`)
      .orderBy('xid')
      .orderBy('seq')
      .limit(limit);
    const { numDeletedRows } = await db.deleteFrom('events').where('seq', 'in', oldest).executeTakeFirst();
    return Number(numDeletedRows);
  }
}
