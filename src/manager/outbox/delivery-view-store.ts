import type { SelectQueryBuilder } from 'kysely';
import { DELIVERY_WINDOW_MS } from '../../contract/defaults.ts';
import type { DeliveryDetail, DeliveryPage, DeliveryView, OfSandbox } from '../../contract/deliveries.ts';
import type { DeliveryState } from '../../contract/words.ts';
import { replayChange } from '../../outbox/delivery-lifecycle.ts';
import { deliveryDetail, deliveryView } from '../../outbox/delivery-view.ts';
import type { DeliveryFilter } from '../../outbox/store.ts';
import type { Database } from '../database/database.ts';
import type { DatabaseClock } from '../database/database-clock-store.ts';
import type { Tables } from '../database/tables.ts';

/** Number of records that one commit makes pending again. */
const REPLAYED_AT_ONCE = 500;

const VIEW_COLUMNS = [
  'id',
  'event_id',
  'event_type',
  'sandbox_id',
  'sequence',
  'state',
  'created_at_ms',
  'finished_at_ms',
  'due_ms',
  'attempts',
] as const;

/** Which of a team's deliveries a list shows. */
export interface TeamDeliveryFilter extends DeliveryFilter {
  sandbox_id?: string | undefined;
  /** As `endpointOf` gives it. */
  endpoint?: string | undefined;
}

/** The number of pending records, and the commit time of the oldest one (wall time in ms), or null. */
export interface PendingCounts {
  pending: number;
  oldest_at_ms: number | null;
}

/** A team's view of its records in the manager's outbox. Errors of all methods: `unavailable`. Source: contract section 7, `/webhooks/deliveries…`. */
export class DeliveryViewStore {
  readonly #database: Database;
  readonly #clock: DatabaseClock;

  constructor(database: Database, clock: DatabaseClock) {
    this.#database = database;
    this.#clock = clock;
  }

  /** A page of deliveries, newest first. The cursor is the id of the last record on the page. */
  async list(team_id: string, filter: TeamDeliveryFilter): Promise<DeliveryPage<OfSandbox<DeliveryView>>> {
    const { state, event_type, sandbox_id, endpoint, limit, before_id } = filter;
    let query = this.#database.db.selectFrom('outbox').select(VIEW_COLUMNS).where('team_id', '=', team_id);
    if (before_id !== undefined) query = query.where('id', '<', before_id);
    if (state) query = query.where('state', '=', state);
    if (event_type) query = query.where('event_type', '=', event_type as never);
    if (sandbox_id) query = query.where('sandbox_id', '=', sandbox_id);
    if (endpoint) query = query.where('endpoint', '=', endpoint);
    const newest = query.orderBy('id', 'desc').limit(limit + 1);
    const rows = await withLastAttempt(this.#database, newest).orderBy('record.id', 'desc').execute();
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    return {
      deliveries: page.map((row) => ({ ...deliveryView(row, TO_WALL_MS), sandbox_id: row.sandbox_id })),
      next_cursor: rows.length > limit && last ? String(last.id) : null,
    };
  }

  /** A delivery with its request and attempts; null if the team has no such event. */
  async find(team_id: string, event_id: string): Promise<OfSandbox<DeliveryDetail> | null> {
    const query = this.#database.db
      .selectFrom('outbox')
      .select([...VIEW_COLUMNS, 'headers', 'body'])
      .where('team_id', '=', team_id)
      .where('event_id', '=', event_id);
    const row = await withLastAttempt(this.#database, query).executeTakeFirst();
    if (!row) return null;
    const attempts = await this.#database.db
      .selectFrom('outbox_attempts')
      .selectAll()
      .where('record_id', '=', row.id)
      .orderBy('attempt')
      .execute();
    return { ...deliveryDetail(row, attempts, TO_WALL_MS), sandbox_id: row.sandbox_id };
  }

  /** Makes a final record pending again, with the same bytes and a new window. Returns its endpoint, or nothing if it is not final. */
  async replay(team_id: string, event_id: string): Promise<string[]> {
    return this.#replay((query) => query.where('team_id', '=', team_id).where('event_id', '=', event_id));
  }

  /** The same for every record of a team in a state. Returns their number and endpoints. */
  async replayAll(
    team_id: string,
    state: DeliveryState,
  ): Promise<{ replayed: number; endpoints: Set<string> }> {
    const endpoints = new Set<string>();
    let replayed = 0;
    // Records that become final again in the meantime are not replayed twice.
    const before_ms = this.#clock.wallMs();
    for (;;) {
      const some = await this.#replay((query) =>
        query
          .where('team_id', '=', team_id)
          .where('state', '=', state)
          .where('finished_at_ms', '<=', before_ms)
          .orderBy('id')
          .limit(REPLAYED_AT_ONCE),
      );
      for (const endpoint of some) endpoints.add(endpoint);
      replayed += some.length;
      if (some.length < REPLAYED_AT_ONCE) return { replayed, endpoints };
    }
  }

  async #replay(
    narrow: (query: ReturnType<typeof finalsOf>) => ReturnType<typeof finalsOf>,
  ): Promise<string[]> {
    const now_ms = this.#clock.wallMs();
    const rows = await this.#database.db
      .updateTable('outbox')
      .set({ state: 'pending', finished_at_ms: null, ...replayChange(now_ms, DELIVERY_WINDOW_MS) })
      .where('id', 'in', narrow(finalsOf(this.#database)))
      .where('due_ms', 'is', null)
      .returning('endpoint')
      .execute();
    return rows.map(({ endpoint }) => endpoint);
  }

  /** Counts pending records of all teams. Reads only indexes. */
  async counts(): Promise<PendingCounts> {
    const pending = this.#database.db.selectFrom('outbox').where('due_ms', 'is not', null);
    const { count } = await pending
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow();
    const { oldest_at_ms } = await pending
      .select(({ fn }) => fn.min<number | null>('created_at_ms').as('oldest_at_ms'))
      .executeTakeFirstOrThrow();
    return { pending: count, oldest_at_ms };
  }
}

function finalsOf({ db }: Database) {
  return db.selectFrom('outbox').select('id').where('due_ms', 'is', null);
}

/** Due times are wall time in this engine. */
const TO_WALL_MS = 0;

/** The records that a query selects, with their latest attempts: of those alone, however many it sorts. */
function withLastAttempt<Row extends { id: number; attempts: number }>(
  { db }: Database,
  query: SelectQueryBuilder<Tables, 'outbox', Row>,
) {
  return db
    .selectFrom(query.as('record'))
    .leftJoin('outbox_attempts as last', (join) =>
      join.onRef('last.record_id', '=', 'record.id').onRef('last.attempt', '=', 'record.attempts'),
    )
    .selectAll('record')
    .select([
      'last.status as last_status',
      'last.error as last_error',
      'last.error_detail as last_error_detail',
    ]);
}
