import { type SelectQueryBuilder, sql } from 'kysely';
import type { AttemptOutcome, DeliveryStore, DueRecord, RecordsAddedListener } from '../../outbox/store.ts';
import type { DatabaseClock } from '../database/clock-store.ts';
import type { Database } from '../database/database.ts';
import type { Tables } from '../database/tables.ts';
import type { OwnedEndpoint } from './endpoint-store.ts';
import type { OutcomeWriter } from './outcome-store.ts';

/** A record's row as far as its schedule goes. */
interface Row {
  id: number;
  event_id: string;
  event_type: string;
  attempts: number;
  failures: number;
  deadline_ms: number;
  due_ms: number | null;
  probe_ms: number;
  created_at_ms: number;
}

/** What is sent of a record. */
export interface StoredRequest {
  url: string;
  /** JSON object. */
  headers: string;
  /** JSON list, or null. */
  signatures: string | null;
  secret_sealed: string | null;
  body: string;
}

const COLUMNS = [
  'id',
  'event_id',
  'event_type',
  'attempts',
  'failures',
  'deadline_ms',
  'due_ms',
  'probe_ms',
  'created_at_ms',
] as const;

/** Said in the words of the partial indexes. */
const IS_TRIED = sql<boolean>`due_ms > 0`;

interface Parts {
  database: Database;
  clock: DatabaseClock;
  outcomes: OutcomeWriter;
  /** Called where it turns out that another replica owns the endpoint. */
  on_lost: () => void;
}

/**
 * The records of one endpoint that this replica owns, as the dispatcher uses them. Thousands of endpoints may have a
 * window of records in memory each: headers and body are read at the attempt.
 *
 * Numbers are given out in the order of reading, because rows do not become visible in the order of theirs.
 */
export class EndpointRecordStore implements DeliveryStore {
  readonly #owned: OwnedEndpoint;
  readonly #parts: Parts;
  #last_number = 0;
  readonly #row_ids = new Map<number, number>();
  readonly #numbers = new Map<number, number>();
  /** Rows that were given out as never tried and whose first outcome is not stored. */
  readonly #untried = new Set<number>();
  /** For every read under way: the rows whose outcome was stored since it began. */
  readonly #settled = new Set<Set<number>>();
  #listener: RecordsAddedListener = () => {};

  constructor(owned: OwnedEndpoint, parts: Parts) {
    this.#owned = owned;
    this.#parts = parts;
  }

  now(): number {
    return this.#parts.clock.now();
  }

  onRecordsAdded(_wanted: () => boolean, listener: RecordsAddedListener): void {
    this.#listener = listener;
  }

  /** Records were added, by this replica or another. */
  committed(): void {
    this.#listener(null);
  }

  async untried(_after_id: number, limit: number): Promise<{ records: DueRecord[]; more: boolean }> {
    const most = limit + this.#untried.size + 1;
    const { rows, read } = await this.#read(
      this.#pending().where('due_ms', '=', 0).orderBy('id').limit(most),
    );
    const fresh = rows.filter(({ id }) => !this.#untried.has(id));
    const given = fresh.slice(0, limit);
    for (const { id } of given) this.#untried.add(id);
    return { records: given.map((row) => this.#record(row)), more: fresh.length > limit || read === most };
  }

  async due(limit: number): Promise<{ records: DueRecord[]; next_due_ms: number | null }> {
    const { rows } = await this.#read(
      this.#tried()
        .orderBy('due_ms')
        .orderBy('id')
        .limit(limit + 1),
    );
    const now_ms = this.now();
    const ready = rows.slice(0, limit).filter(({ due_ms }) => (due_ms ?? 0) <= now_ms);
    return {
      records: ready.map((row) => this.#record(row)),
      next_due_ms: rows[ready.length]?.due_ms ?? null,
    };
  }

  async overdue(limit: number): Promise<{ records: DueRecord[]; next_deadline_ms: number | null }> {
    const { rows } = await this.#read(
      this.#tried()
        .orderBy('deadline_ms')
        .limit(limit + 1),
    );
    const now_ms = this.now();
    const ready = rows.slice(0, limit).filter(({ deadline_ms }) => deadline_ms <= now_ms);
    return {
      records: ready.map((row) => this.#record(row)),
      next_deadline_ms: rows[ready.length]?.deadline_ms ?? null,
    };
  }

  async probeCandidate(held: number[]): Promise<DueRecord | null> {
    const taken = new Set(held.map((number) => this.#row_ids.get(number)));
    const { rows } = await this.#read(
      this.#tried()
        .orderBy('probe_ms')
        .limit(taken.size + 1),
    );
    const row = rows.find(({ id }) => !taken.has(id));
    return row ? this.#record(row) : null;
  }

  async record(outcome: AttemptOutcome): Promise<void> {
    const id = this.#row_ids.get(outcome.id);
    if (id === undefined) return;
    const kept = await this.#parts.outcomes.write(this.#owned, { ...outcome, id });
    if (!kept) this.#parts.on_lost();
    // From here on reads show it as it is; what was read before does not.
    for (const settled of this.#settled) settled.add(id);
    this.#untried.delete(id);
    this.#row_ids.delete(outcome.id);
    this.#numbers.delete(id);
  }

  /** What is to be sent of a record; null where it is no longer pending or no longer this replica's to send. */
  async request(record: DueRecord): Promise<StoredRequest | null> {
    const { endpoint, fence } = this.#owned;
    const row = await this.#parts.database.db
      .selectFrom('outbox')
      .innerJoin('outbox_endpoints', 'outbox_endpoints.endpoint', 'outbox.endpoint')
      .select(['url', 'headers', 'signatures', 'secret_sealed', 'body'])
      .where('id', '=', this.#row_ids.get(record.id) ?? 0)
      .where('outbox.endpoint', '=', endpoint)
      .where('due_ms', 'is not', null)
      .where('fence', '=', fence)
      .where('owner', 'is not', null)
      .executeTakeFirst();
    return row ?? null;
  }

  #pending() {
    return this.#parts.database.db
      .selectFrom('outbox')
      .select(COLUMNS)
      .where('endpoint', '=', this.#owned.endpoint);
  }

  #tried() {
    return this.#pending().where(IS_TRIED);
  }

  /** Leaves out what was settled while the read was under way: it may show what was before. */
  async #read(query: SelectQueryBuilder<Tables, 'outbox', Row>): Promise<{ rows: Row[]; read: number }> {
    const settled = new Set<number>();
    this.#settled.add(settled);
    try {
      const rows = await query.execute();
      return { rows: rows.filter(({ id }) => !settled.has(id)), read: rows.length };
    } finally {
      this.#settled.delete(settled);
    }
  }

  #record({ id, due_ms: _due_ms, ...row }: Row): DueRecord {
    let number = this.#numbers.get(id);
    if (number === undefined) {
      number = ++this.#last_number;
      this.#numbers.set(id, number);
      this.#row_ids.set(number, id);
    }
    return { ...row, id: number, headers: {}, body: '' };
  }
}
