import { lstatSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { Clock } from '../base/clock.ts';
import { DELIVERY_WINDOW_MS } from '../contract/defaults.ts';
import { CatalogueError, StartError } from '../contract/errors.ts';
import { DamagedOutbox, type FoundRecord } from './damaged-outbox.ts';
import { databasePath, hasLostHeader } from './database-file.ts';
import { type HandedOver, type HandedOverAttempt, handedOver, type PendingRow } from './handed-over.ts';
import { HighWater, type Mark } from './high-water.ts';
import { checkOutboxRow } from './outbox-row.ts';
import { finishRestoring } from './restored-files.ts';
import type { OutboxRow } from './rows.ts';
import { expectedPending } from './salvage.ts';
import { salvagedAttempts, salvagedDelivery, salvagedRecord } from './salvaged-rows.ts';
import { hasOwnSchema, ownVersion } from './schema.ts';
import { finishSettingAside, setAsidePath, unsalvaged } from './set-aside.ts';
import { prepareStateDir } from './state-files.ts';
import { DirectoryTakenError, StateLock } from './state-lock.ts';
import { storeNow } from './store-clock.ts';
import { damage, troubleOf } from './store-errors.ts';

/**
 * What a hand-over read, page by page: `records` in the order of their commits; the last page alone tells what could
 * not be read. `lost_records`: acknowledged records that are missing or damaged, at most; `trouble`: why, in one
 * sentence for the log.
 */
export interface HandOverPage {
  records: HandedOver[];
  lost_records: number;
  trouble: string | null;
}

/** The stopped daemon's outbox. */
export interface HandOverSource {
  state_dir: string;
  /** Records of any other sandbox, such as the parent of a fork, are not handed over. */
  sandbox_id: string;
}

const PAGE_RECORDS = 200;
const PAGE_BYTES = 4 * 1024 * 1024;
/** A row whose texts are longer was written by nobody's daemon; it is not even read. */
const TEXT_MAX_BYTES = 8 * 1024 * 1024;
const ATTEMPTS_MAX = 1_000;

/**
 * Reads every record that a stopped daemon had not delivered, as stored, also from what that daemon had set aside and
 * not yet taken over. The records stay as they are: read again, it gives the same. The outbox is taken for what
 * processes of the sandbox may have made of it: neither a link nor a schema or row of their making gets further than
 * this. Throws `conflict` while a daemon still has it, and whatever the system says where the disk is in trouble: only
 * contents that are wrong are told as lost. Source: contract section 7, "A deletion loses no event".
 */
export function* readUndelivered(source: HandOverSource, clock: Clock): Generator<HandOverPage> {
  const mark = readMark(source, clock);
  const reader = new Reader(source, clock, mark);
  let lock: StateLock | null = null;
  try {
    prepareStateDir(source.state_dir);
    if (lstatSync(join(source.state_dir, 'lock'), { throwIfNoEntry: false })) {
      lock = new StateLock(source.state_dir);
    }
    // What the daemon may have begun with its files.
    finishRestoring(source.state_dir);
    finishSettingAside(source.state_dir);
    yield* reader.pages();
  } catch (error) {
    const { code, message, cause } = error as Error & { code?: string };
    if (error instanceof DirectoryTakenError || code === 'SQLITE_BUSY') {
      throw new CatalogueError('conflict', 'A daemon still has the outbox.');
    }
    // Something that is no file of the daemon's is in its place.
    if (!(error instanceof StartError) || cause !== undefined) throw error;
    yield nothing(Math.max(0, (mark?.pending ?? 0) - reader.read), message);
  } finally {
    lock?.release();
  }
}

function nothing(lost_records: number, trouble: string): HandOverPage {
  return { records: [], lost_records, trouble };
}

/** What the outbox held last by the mark beside it, where that is this sandbox's. */
function readMark({ state_dir, sandbox_id }: HandOverSource, clock: Clock): Mark | null {
  const mark = new HighWater(join(state_dir, 'high-water'), clock).read();
  return mark?.sandbox_id === sandbox_id ? mark : null;
}

/** Reads the pending records of a stopped outbox: page by page while it is whole, record by record where it is not. */
class Reader {
  readonly #state_dir: string;
  readonly #sandbox_id: string;
  readonly #clock: Clock;
  readonly #mark: Mark | null;
  readonly #seen = new Set<string>();
  #rejected = 0;

  constructor({ state_dir, sandbox_id }: HandOverSource, clock: Clock, mark: Mark | null) {
    this.#state_dir = state_dir;
    this.#sandbox_id = sandbox_id;
    this.#clock = clock;
    this.#mark = mark;
  }

  /** Records that were read and are whole. */
  get read(): number {
    return this.#seen.size;
  }

  *pages(): Generator<HandOverPage> {
    const path = databasePath(this.#state_dir);
    const is_there = lstatSync(path, { throwIfNoEntry: false }) !== undefined;
    const waiting = unsalvaged(this.#state_dir);
    if (!is_there && waiting.length === 0 && !this.#mark) return;
    let trouble = 'the outbox is missing or has lost its beginning';
    if (is_there && !hasLostHeader(path)) {
      try {
        yield* this.#whole(path, waiting);
        return;
      } catch (error) {
        if (troubleOf(error) !== 'damage') throw error;
        trouble = (error as Error).message;
      }
    }
    yield* this.#damaged([path, ...this.#paths(waiting)], trouble);
  }

  #paths(numbers: number[]): string[] {
    return numbers.map((number) => setAsidePath(this.#state_dir, 'unsalvaged', number));
  }

  /** Throws damage at the first of it. */
  *#whole(path: string, waiting: number[]): Generator<HandOverPage> {
    // Never this outbox's own; one that names another file could have that removed.
    rmSync(`${path}-journal`, { force: true });
    const db = new Database(path, { timeout: 0, fileMustExist: true });
    let unfinished: number[];
    let expected: number;
    try {
      const outbox = openTrusted(db);
      yield* this.#pagesOf(db, outbox);
      const salvaged = db.pragma('application_id', { simple: true }) as number;
      unfinished = waiting.filter((number) => number > salvaged);
      expected = this.#expected(db, outbox);
    } finally {
      db.close();
    }
    const trouble = 'records are missing or damaged';
    if (unfinished.length === 0 && this.#rejected === 0 && this.read >= expected) return;
    // A bad row, or an unfinished salvage: what is whole of the rest is there all the same.
    this.#rejected = 0;
    yield* this.#damaged([path, ...this.#paths(unfinished)], trouble);
  }

  /** How many records are pending by the outbox's own count; the last start may have been under another id. */
  #expected(db: Database.Database, outbox: OutboxRow): number {
    if (outbox.sandbox_id === this.#sandbox_id) return outbox.pending + this.#missing(outbox);
    if (ownVersion(db) === 1) return 0;
    const pending = db.prepare('SELECT pending FROM sandboxes WHERE sandbox_id = ?').pluck();
    return Number(pending.get(this.#sandbox_id) ?? 0);
  }

  /** Records that are gone from the end of the outbox without a trace in it. */
  #missing({ next_sequence }: OutboxRow): number {
    if (!this.#mark) return 0;
    return Math.min(this.#mark.pending, Math.max(0, this.#mark.sequence + 1 - next_sequence));
  }

  *#told(expected: number, trouble: string): Generator<HandOverPage> {
    const lost_records = Math.max(0, expected - this.read, this.#rejected);
    if (lost_records > 0) yield nothing(lost_records, trouble);
  }

  *#pagesOf(db: Database.Database, outbox: OutboxRow): Generator<HandOverPage> {
    const now_ms = storeNow(outbox, this.#clock);
    // The first format had none.
    const mac = ownVersion(db) === 1 ? 'NULL' : 'mac';
    // Not by an index, which may be what is damaged.
    const found = db.prepare(`SELECT id, event_id, event_type, sandbox_id, sequence, headers, body, checksum,
      ${mac} AS mac, created_at_ms, deadline_ms, due_ms, probe_ms, attempts, failures
      FROM deliveries NOT INDEXED CROSS JOIN records NOT INDEXED USING (id)
      WHERE id > ? AND state = 'pending' AND sandbox_id = ? AND length(body) + length(headers) < ?
      ORDER BY id LIMIT ?`);
    for (let last_id = 0; ; ) {
      const rows: PendingRow[] = [];
      let bytes = 0;
      for (const row of found.iterate(last_id, this.#sandbox_id, TEXT_MAX_BYTES, PAGE_RECORDS)) {
        rows.push(row as PendingRow);
        bytes += String((row as PendingRow).body).length;
        if (bytes > PAGE_BYTES) break;
      }
      const next_id = rows.at(-1)?.id ?? last_id;
      if (next_id <= last_id) return;
      last_id = next_id;
      const records = rows.flatMap((row) => this.#taken(row, attemptsOf(db, row.id), now_ms));
      if (records.length > 0) yield { records, lost_records: 0, trouble: null };
    }
  }

  #taken(row: PendingRow, attempts: HandedOverAttempt[], now_ms: number): HandedOver[] {
    if (this.#seen.has(row.event_id)) return [];
    const made = handedOver(row, attempts, now_ms);
    // What the headers say is covered by the checksum; the columns beside them are not.
    const record = made?.headers['ce-id'] === row.event_id ? made : null;
    if (record) this.#seen.add(record.event_id);
    else this.#rejected += 1;
    return record ? [record] : [];
  }

  /** Reads past whatever cannot be read, newest outbox first, what has not been read yet. */
  *#damaged(paths: string[], trouble: string): Generator<HandOverPage> {
    const opened: { path: string; outbox: DamagedOutbox }[] = [];
    try {
      for (const path of paths) {
        const outbox = DamagedOutbox.open(path);
        if (outbox) opened.push({ path, outbox });
      }
      const outboxes = opened.map(({ outbox }) => outbox);
      const expected = expectedPending(outboxes, this.#mark);
      const passed = new Set<string>();
      for (const outbox of outboxes) yield* this.#pagesOfDamaged(outbox, passed);
      yield* this.#told(expected, trouble);
    } finally {
      for (const { path, outbox } of opened) outbox.close(path);
    }
  }

  *#pagesOfDamaged(outbox: DamagedOutbox, passed: Set<string>): Generator<HandOverPage> {
    const row = outbox.outbox();
    const wall_ms = this.#clock.wallMs();
    const now_ms = row ? storeNow(row, this.#clock) : wall_ms;
    let records: HandedOver[] = [];
    let bytes = 0;
    for (const found of outbox.records()) {
      const read = this.#read(found, { now_ms, wall_ms, window_ms: DELIVERY_WINDOW_MS }, passed);
      records.push(...read);
      bytes += read[0]?.body.length ?? 0;
      if (records.length < PAGE_RECORDS && bytes < PAGE_BYTES) continue;
      yield { records, lost_records: 0, trouble: null };
      records = [];
      bytes = 0;
    }
    if (records.length > 0) yield { records, lost_records: 0, trouble: null };
  }

  /** `passed`: events of which is known what became of them. */
  #read(
    { record: row, delivery, attempts }: FoundRecord,
    time: { now_ms: number; wall_ms: number; window_ms: number },
    passed: Set<string>,
  ): HandedOver[] {
    const record = salvagedRecord(row);
    if (!record || record.sandbox_id !== this.#sandbox_id || passed.has(record.event_id)) return [];
    passed.add(record.event_id);
    const known = salvagedDelivery(delivery, record, time);
    if (known && known.state !== 'pending') return [];
    const {
      attempts: made,
      failures,
      deadline_ms,
      due_ms,
      probe_ms,
    } = known ?? {
      ...{ attempts: 0, failures: 0, due_ms: 0, probe_ms: null },
      deadline_ms: record.created_at_ms - time.wall_ms + time.now_ms + time.window_ms,
    };
    const log = salvagedAttempts(attempts).map(
      ([attempt, started_at_ms, duration_ms, status, error, next_attempt_at_ms, response_body]) =>
        ({
          attempt,
          started_at_ms,
          duration_ms,
          status,
          error,
          next_attempt_at_ms,
          response_body,
        }) as HandedOverAttempt,
    );
    const pending = {
      attempts: made,
      failures,
      deadline_ms: Math.max(0, deadline_ms),
      due_ms: due_ms ?? 0,
      probe_ms,
    };
    return this.#taken({ mac: null, ...record, ...pending }, log, time.now_ms);
  }
}

/** What the outbox says of itself, with nothing in it trusted. Throws damage where it is not its daemon's. */
function openTrusted(db: Database.Database): OutboxRow {
  db.pragma('locking_mode = EXCLUSIVE');
  db.pragma('trusted_schema = OFF');
  db.pragma('query_only = ON');
  if (!hasOwnSchema(db)) throw damage('the outbox has tables that are not of its daemon');
  checkOutboxRow(db);
  return db.prepare('SELECT * FROM outbox').get() as OutboxRow;
}

function attemptsOf(db: Database.Database, id: number): HandedOverAttempt[] {
  return db
    .prepare(`SELECT attempt, started_at_ms, duration_ms, status, error, next_attempt_at_ms,
      substr(response_body, 1, 1024) AS response_body FROM attempts WHERE record_id = ? ORDER BY attempt LIMIT ?`)
    .all(id, ATTEMPTS_MAX) as HandedOverAttempt[];
}
