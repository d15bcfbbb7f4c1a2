import { type SelectQueryBuilder, sql } from 'kysely';
import { sleep } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { WebhookRetry } from '../../contract/words.ts';
import type {
  AttemptOutcome,
  DeliveryStore,
  DueRecord,
  LoadedRecord,
  RecordsListener,
} from '../../outbox/store.ts';
import type { Database } from '../database/database.ts';
import type { DatabaseClock } from '../database/database-clock-store.ts';
import { reasonOf } from '../database/database-errors.ts';
import type { Tables } from '../database/tables.ts';
import type { OutboxCharge } from '../sandboxes/ports.ts';
import type { OwnedEndpoint } from './endpoint-store.ts';
import type { OutcomeStore } from './outcome-store.ts';

/** The columns of a record that its schedule requires. */
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
  body_bytes?: number;
}

/** The columns of a record's request. */
interface RequestRow {
  sandbox_id: string;
  team_id: string;
  sequence: number | null;
  url: string;
  /** JSON object. */
  headers: string;
  signatures: string | null;
  secret_sealed: string | null;
  body: string;
  retry: WebhookRetry;
}

/** A record with its request and what signs its attempts, as they are stored. */
export interface EndpointRecord extends LoadedRecord {
  readonly sandbox_id: string;
  readonly team_id: string;
  /** Null for the manager's own `sandbox.deleted`. */
  readonly sequence: number | null;
  readonly url: string;
  readonly body: string;
  /** JSON list, or null. */
  readonly signatures: string | null;
  readonly secret_sealed: string | null;
  readonly retry: WebhookRetry;
  /** Why it cannot be sent as it is stored, or null. */
  readonly unusable: string | null;
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

/** Must be written like the condition of the partial indexes. */
const IS_TRIED = sql<boolean>`due_ms > 0`;

/** Records read at a time where teams have a rate: each may be of the longest. */
const CHARGED_RECORDS = 16;

/** Pause before a record that could not be loaded is read again. */
const DATABASE_RETRY_MS = 250;

interface Parts {
  database: Database;
  clock: DatabaseClock;
  log: Log;
  outcomes: OutcomeStore;
  /** Whether an attempt that starts now ends within the lease. */
  hasLease: () => boolean;
  /** Without it nothing is charged. */
  charge?: OutboxCharge | undefined;
  /** Called when a record is no longer this replica's to send; must stop the dispatcher at once. */
  onLost: () => void;
}

/**
 * The records of one owned endpoint, as the dispatcher's store. Thousands of endpoints may each have a window of records
 * in memory, so a record's request is only read when it is loaded for an attempt.
 *
 * The ids given to the dispatcher are numbers in the order of reading, because rows do not become visible in the order
 * of their ids. Errors of all reads: `unavailable`.
 */
export class EndpointRecordStore implements DeliveryStore<EndpointRecord> {
  readonly #owned: OwnedEndpoint;
  readonly #parts: Parts;
  #last_number = 0;
  readonly #row_ids = new Map<number, number>();
  readonly #numbers = new Map<number, number>();
  /** Rows given out as untried whose first outcome is not stored yet. */
  readonly #untried = new Set<number>();
  /** For each running read: the rows whose outcome was recorded since it began. */
  readonly #recorded = new Set<Set<number>>();
  #listener: RecordsListener | null = null;
  #is_closed = false;
  #may_lack = false;

  constructor(owned: OwnedEndpoint, parts: Parts) {
    this.#owned = owned;
    this.#parts = parts;
  }

  /** The database's wall time in ms. */
  now(): number {
    return this.#parts.clock.wallMs();
  }

  /** Sets the listener for new records, which are always to be read: this engine has none at hand. */
  onRecordsAdded(listener: RecordsListener): void {
    this.#listener = listener;
  }

  /** Records were added, by this replica or another. */
  committed(): void {
    this.#listener?.onAdded(null);
  }

  /** Records that were never tried, in the order in which they were first given out, after `after_id`; `more` if others follow. */
  async untried(after_id: number, limit: number): Promise<{ records: DueRecord[]; more: boolean }> {
    const given_most = this.#parts.charge?.has_rate ? Math.min(limit, CHARGED_RECORDS) : limit;
    const most = given_most + this.#untried.size + 1;
    const { rows, read } = await this.#read(
      this.#pending().where('due_ms', '=', 0).orderBy('id').limit(most),
    );
    // Only what is given out gets a number: a row that becomes visible late must not be overtaken for good by later ones.
    const again = rows.filter(({ id }) => this.#untried.has(id) && this.#numberOf(id) > after_id);
    again.sort((a, b) => this.#numberOf(a.id) - this.#numberOf(b.id));
    const wanted = [...again, ...rows.filter(({ id }) => !this.#untried.has(id))];
    const given = wanted.slice(0, given_most);
    for (const { id } of given) this.#untried.add(id);
    return {
      records: given.map((row) => this.#record(row)),
      more: wanted.length > given_most || read === most,
    };
  }

  /** Records whose retry is due, earliest first, and when the next one is. */
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

  /** Tried records whose window has ended, and when the next window ends. */
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

  /** The tried record that may be the probe first and is not in `held`; null if there is none. */
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

  /** Records an outcome; resolves once it is on stable storage. Calls `onLost` if it was refused. */
  async record(outcome: AttemptOutcome): Promise<void> {
    const id = this.#row_ids.get(outcome.id);
    if (id === undefined) return;
    const is_recorded = await this.#parts.outcomes.record(this.#owned, { ...outcome, id });
    if (!is_recorded) this.#parts.onLost();
    // Reads that start from now on see the outcome; reads that are running may not.
    for (const recorded of this.#recorded) recorded.add(id);
    this.#untried.delete(id);
    if (outcome.decision.state !== 'pending') this.release(outcome.id);
  }

  /** The dispatcher holds a record no more: if it is read again, it gets another number. */
  release(number: number): void {
    this.#numbers.delete(this.#row_ids.get(number) ?? 0);
    this.#row_ids.delete(number);
  }

  /**
   * Reads the request of a record; waits until the database confirms that the record is still this replica's to send and
   * the lease lasts for an attempt. Null once closed, or if the record is lost, which `onLost` is told.
   */
  async load(record: DueRecord): Promise<EndpointRecord | null> {
    const { hasLease, clock, log, onLost } = this.#parts;
    while (!this.#is_closed) {
      try {
        const row = await this.#request(record);
        if (!row) {
          onLost();
          return null;
        }
        if (hasLease() && !this.#is_closed) return endpointRecord(record, row);
      } catch (error) {
        log.debug({ reason: reasonOf(error) }, 'an attempt is waiting for the database');
      }
      if (!this.#is_closed) await sleep(clock, DATABASE_RETRY_MS);
    }
    return null;
  }

  /** The stored request; undefined if the record is no longer pending, or the endpoint no longer owned. */
  #request(record: DueRecord): Promise<RequestRow | undefined> {
    const { endpoint, fence } = this.#owned;
    return this.#parts.database.db
      .selectFrom('outbox')
      .innerJoin('outbox_endpoints', 'outbox_endpoints.endpoint', 'outbox.endpoint')
      .select([
        'sandbox_id',
        'team_id',
        'sequence',
        'url',
        'headers',
        'signatures',
        'secret_sealed',
        'body',
        'retry',
      ])
      .where('id', '=', this.#row_ids.get(record.id) ?? 0)
      .where('outbox.endpoint', '=', endpoint)
      .where('due_ms', 'is not', null)
      .where('fence', '=', fence)
      .where('owner', 'is not', null)
      .executeTakeFirst();
  }

  /** Whether records of a team that was held may not have been read, and are to be read again; then the next reads count. */
  takesUp(): boolean {
    const may_lack = this.#may_lack;
    this.#may_lack = false;
    return may_lack;
  }

  /** Ends the waits of `load`. Idempotent. */
  close(): void {
    this.#is_closed = true;
  }

  #pending() {
    const pending = this.#parts.database.db
      .selectFrom('outbox')
      .select(COLUMNS)
      .where('endpoint', '=', this.#owned.endpoint);
    const { charge } = this.#parts;
    if (!charge?.has_rate) return pending;
    // The bodies at hand are bounded, because they are sent although the rate is used up meanwhile.
    const sized = pending.select(sql<number>`octet_length(body)`.as('body_bytes'));
    const held = charge.held();
    if (held.length === 0) return sized;
    this.#may_lack = true;
    return sized.where(({ eb, or }) => or([eb('team_id', 'not in', held), eb('sequence', 'is', null)]));
  }

  #tried() {
    return this.#pending().where(IS_TRIED);
  }

  /** Leaves out what was recorded while the read was under way: it may show what was before. */
  async #read(query: SelectQueryBuilder<Tables, 'outbox', Row>): Promise<{ rows: Row[]; read: number }> {
    const recorded = new Set<number>();
    this.#recorded.add(recorded);
    try {
      const rows = await query.execute();
      return { rows: rows.filter(({ id }) => !recorded.has(id)), read: rows.length };
    } finally {
      this.#recorded.delete(recorded);
    }
  }

  #numberOf(row_id: number): number {
    return this.#numbers.get(row_id) ?? 0;
  }

  #record({ id, due_ms: _due_ms, body_bytes = 0, ...row }: Row): DueRecord {
    let number = this.#numbers.get(id);
    if (number === undefined) {
      number = ++this.#last_number;
      this.#numbers.set(id, number);
      this.#row_ids.set(number, id);
    }
    return { ...row, id: number, body_bytes };
  }
}

function endpointRecord(record: DueRecord, { headers, ...request }: RequestRow): EndpointRecord {
  try {
    return { ...record, ...request, headers: JSON.parse(headers), unusable: null };
  } catch (error) {
    return { ...record, ...request, headers: {}, unusable: (error as Error).message };
  }
}
