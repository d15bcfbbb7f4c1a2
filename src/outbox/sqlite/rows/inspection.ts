import type { Database } from 'better-sqlite3';
import type { Clock } from '../../../base/clock.ts';
import type { DeliveryDetail, DeliveryView } from '../../../contract/deliveries.ts';
import {
  type AttemptRow,
  type DeliveryRow,
  type DetailRow,
  deliveryDetail,
  deliveryView,
} from '../../delivery-view.ts';
import type { DeliveryFilter, StreamRecord } from '../../store.ts';
import type { SqliteStore } from './sqlite-store.ts';

const STATE = "CASE sandbox WHEN @number THEN state ELSE 'foreign' END AS state";
const VIEW_COLUMNS = `id, event_id, event_type, sequence, ${STATE}, created_at_ms, finished_at_ms, due_ms, attempts`;
const VIEW = 'deliveries JOIN records USING (id)';

/** The records that a query selects, newest first, with their latest attempts: of those alone, however many it sorts. */
const withLastAttempt = (
  query: string,
) => `SELECT record.*, last.status AS last_status, last.error AS last_error, last.error_detail AS last_error_detail
  FROM (${query}) AS record LEFT JOIN attempts AS last ON last.record_id = record.id AND last.attempt = record.attempts
  ORDER BY record.id DESC`;

/** Records read for one part of a list. */
const SCANNED_RECORDS = 2_000;
/** About how much is read at once for a follower, who keeps it until a slow client has taken it. */
const PAGE_BYTES = 256 * 1024;

/** A part of a list of deliveries. */
export interface ListPart {
  deliveries: DeliveryView[];
  /** The last one's id, which is the cursor after it; null where there is none. */
  last_id: number | null;
  /** Whether others follow that were found already. */
  more: boolean;
  /** The id before which the next part begins; null where all records were read. */
  scanned_to: number | null;
}

/** The outbox as the API shows it. Reads only. Source: contract section 4, `/webhook/deliveries`. */
export class Inspection {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #store: () => SqliteStore;

  /** `store` has the clock of due times, and knows which records are foreign. */
  constructor(db: Database, clock: Clock, store: () => SqliteStore) {
    this.#db = db;
    this.#clock = clock;
    this.#store = store;
  }

  /** A part of the deliveries that match a filter, newest first: see `ListPart`. */
  list(filter: DeliveryFilter): ListPart {
    const { number } = this.#store();
    const before_id = filter.before_id ?? Number.MAX_SAFE_INTEGER;
    const conditions = ['id < @before_id'];
    // Said in the words of the partial indexes, so that a state is found without reading every record.
    if (filter.state === 'foreign') conditions.push('sandbox != @number');
    else if (filter.state) {
      const due = filter.state === 'pending' ? 'NOT NULL' : 'NULL';
      conditions.push('sandbox = @number', 'deliveries.state = @state', `due_ms IS ${due}`);
    }
    // No index finds rare event types: a part reads a fixed number of records, however many match.
    const floor_id = filter.event_type ? this.#idBelow(before_id) : null;
    if (filter.event_type) conditions.push('id >= @floor_id', 'event_type = @event_type');
    const rows = this.#db
      .prepare(
        withLastAttempt(
          `SELECT ${VIEW_COLUMNS} FROM ${VIEW} WHERE ${conditions.join(' AND ')} ORDER BY id DESC LIMIT @limit`,
        ),
      )
      .all({
        before_id,
        number,
        floor_id: floor_id ?? 0,
        state: filter.state,
        event_type: filter.event_type,
        limit: filter.limit + 1,
      }) as ({ id: number } & DeliveryRow)[];
    const page = rows.slice(0, filter.limit);
    const to_wall_ms = this.#toWallMs();
    return {
      deliveries: page.map((row) => deliveryView(row, to_wall_ms)),
      last_id: page.at(-1)?.id ?? null,
      more: rows.length > filter.limit,
      scanned_to: floor_id,
    };
  }

  /** The id `SCANNED_RECORDS` records below another; null where there are fewer. */
  #idBelow(id: number): number | null {
    const sql = 'SELECT id FROM deliveries WHERE id < ? ORDER BY id DESC LIMIT 1 OFFSET ?';
    return (
      (this.#db
        .prepare(sql)
        .pluck()
        .get(id, SCANNED_RECORDS - 1) as number | undefined) ?? null
    );
  }

  /** One delivery with its body and attempts, or null. */
  find(event_id: string): DeliveryDetail | null {
    const row = this.#db
      .prepare(
        withLastAttempt(`SELECT ${VIEW_COLUMNS}, headers, body FROM ${VIEW} WHERE event_id = @event_id`),
      )
      .get({ event_id, number: this.#store().number }) as ({ id: number } & DetailRow) | undefined;
    if (!row) return null;
    const attempts = this.#db
      .prepare('SELECT * FROM attempts WHERE record_id = ? ORDER BY attempt')
      .all(row.id) as AttemptRow[];
    return deliveryDetail(row, attempts, this.#toWallMs());
  }

  /** The next records of this sandbox after a sequence, oldest first: up to `limit`, and about `PAGE_BYTES`. */
  after(sequence: number, limit: number): StreamRecord[] {
    const { sandbox_id } = this.#store();
    const records: StreamRecord[] = [];
    let bytes = 0;
    const found = this.#db
      .prepare(`SELECT sequence, event_type, body FROM records
        WHERE id > ? AND sandbox_id = ? AND sequence > ? ORDER BY id LIMIT ?`)
      .iterate(this.#store().idBefore(sequence), sandbox_id, sequence, limit) as Iterable<StreamRecord>;
    for (const record of found) {
      records.push(record);
      bytes += record.body.length;
      if (bytes >= PAGE_BYTES) break;
    }
    return records;
  }

  /** Due times are on the store's clock; the API shows wall time. */
  #toWallMs(): number {
    return this.#clock.wallMs() - this.#store().now();
  }
}
