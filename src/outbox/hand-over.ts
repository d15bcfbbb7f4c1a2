import { lstatSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { Clock } from '../base/clock.ts';
import { CatalogueError } from '../contract/errors.ts';
import type { PendingRow, Trust } from './belief.ts';
import { DATABASE_FILES, databasePath, hasLostItsHeader } from './database-file.ts';
import { type HandedOver, handedOver } from './handed-over.ts';
import { HighWater } from './high-water.ts';
import { checkReadable, mayPass } from './passing-errors.ts';
import { ownVersion } from './schema.ts';
import { type KeptClock, storeNow } from './store-clock.ts';

/**
 * What a hand-over read, page by page: `records` in the order of their commits; the last page alone tells what could
 * not be read. `lost_records`: acknowledged records that are missing or damaged, at most; `trouble`: why, in one
 * sentence for the log. `set_aside`: records in the outbox that its daemon did not make.
 */
export interface HandOverPage {
  records: HandedOver[];
  lost_records: number;
  set_aside: number;
  trouble: string | null;
}

/** The stopped daemon's outbox, and whose records are handed over: not those of the parent of a fork. */
export interface HandOverSource extends Trust {
  /** Nothing that runs may reach it any more. */
  state_dir: string;
}

/** What of a state directory a hand-over reads: all else may be anything. */
export const HANDED_OVER_FILES = [...DATABASE_FILES, 'high-water'];

const PAGE_RECORDS = 200;
const PAGE_BYTES = 4 * 1024 * 1024;
/** A row whose texts are longer was written by nobody's daemon; it is not even read. */
const TEXT_MAX_BYTES = 8 * 1024 * 1024;
const ATTEMPTS_MAX = 1_000;
/** More than an outbox's bounds leave room for: what lies behind it is not read. */
const TOTAL_MAX_BYTES = 1024 * 1024 * 1024;
/** So many ids of a damaged outbox are tried one by one; where all of them fail, ever more are stepped over. */
const SINGLE_STEPS = 256;
/** A mark is two numbers and an id. */
const MARK_MAX_BYTES = 1024;

/** What the outbox says of itself. */
interface OutboxRow extends KeptClock {
  sandbox_id: string | null;
  next_sequence: number;
  next_id: number;
  pending: number;
}

/**
 * Reads every record that a stopped daemon had not delivered, as stored. The outbox stays as it is: read again, it
 * gives the same. It is taken for what processes of the sandbox may have made of it: neither a link nor a schema or
 * row of their making gets further than this. Throws what may pass, such as a disk in trouble or too many open files;
 * what was damaged or put there by others ends in `trouble`.
 * Source: contract section 7, "A deletion loses no event".
 */
export function* readUndelivered(source: HandOverSource, clock: Clock): Generator<HandOverPage> {
  let mark_pending = 0;
  let reader: Reader | null = null;
  try {
    const mark = readMark(source, clock);
    mark_pending = mark?.pending ?? 0;
    checkFiles(source.state_dir);
    const db = openStopped(source.state_dir);
    if (db === null && mark === null) return;
    if (db === null) return yield nothing(mark_pending, 'the outbox is missing or has lost its beginning');
    reader = new Reader(db, source, clock);
    const sequence = reader.outbox.sandbox_id === source.sandbox_id ? (mark?.sequence ?? 0) : 0;
    const missing = Math.min(mark_pending, Math.max(0, sequence + 1 - reader.outbox.next_sequence));
    for (const page of reader.pages(missing)) {
      if (page.trouble !== null) checkReadable(source.state_dir);
      yield page;
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'SQLITE_BUSY') throw new CatalogueError('conflict', 'A daemon still has the outbox.');
    if (mayPass(error)) throw error;
    checkReadable(source.state_dir);
    yield nothing(Math.max(0, mark_pending - (reader?.read ?? 0)), message);
  } finally {
    reader?.close();
  }
}

function nothing(lost_records: number, trouble: string): HandOverPage {
  return { records: [], lost_records, set_aside: 0, trouble };
}

/** Throws where something else is in a file's place: SQLite would follow a link, and write to what it leads to. */
function checkFiles(state_dir: string): void {
  for (const name of HANDED_OVER_FILES) {
    const stat = lstatSync(join(state_dir, name), { throwIfNoEntry: false });
    if (stat && (!stat.isFile() || stat.nlink > 1)) throw new Error(`${name} is not a plain file of its own`);
  }
}

/** What the outbox held last by the mark beside it, where that is this sandbox's. */
function readMark({ state_dir, sandbox_id }: HandOverSource, clock: Clock) {
  const path = join(state_dir, 'high-water');
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (!stat?.isFile() || stat.size > MARK_MAX_BYTES) return null;
  const mark = new HighWater(path, clock).read();
  return mark?.sandbox_id === sandbox_id ? mark : null;
}

/** The outbox, with nothing in it trusted; null where there is none. */
function openStopped(state_dir: string): Database.Database | null {
  const path = databasePath(state_dir);
  // Never this outbox's own; one that names another file could have that removed.
  rmSync(`${path}-journal`, { force: true });
  if (!lstatSync(path, { throwIfNoEntry: false }) || hasLostItsHeader(state_dir)) return null;
  const db = new Database(path, { timeout: 0, fileMustExist: true });
  try {
    db.pragma('locking_mode = EXCLUSIVE');
    db.pragma('trusted_schema = OFF');
    db.pragma('query_only = ON');
    if (ownVersion(db) === null) throw new Error('the outbox has tables that are not of its daemon');
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Steps through the pending records of an outbox that may be damaged. */
class Reader {
  readonly #db: Database.Database;
  /** The first format had neither `mac` nor numbers of other sandboxes than the last. */
  readonly #is_first_format: boolean;
  readonly #trust: Trust;
  readonly #now_ms: number;
  readonly outbox: OutboxRow;
  #damaged = 0;
  #set_aside = 0;
  #bytes = 0;
  #trouble: string | null = null;
  /** Records that were whole. */
  read = 0;

  constructor(db: Database.Database, trust: Trust, clock: Clock) {
    this.#db = db;
    this.#is_first_format = ownVersion(db) === 1;
    this.#trust = trust;
    this.outbox = (db.prepare('SELECT * FROM outbox').get() ?? {}) as OutboxRow;
    this.#now_ms = storeNow(this.outbox, clock);
  }

  /** `missing`: records that are gone from the end of the outbox without a trace in it. */
  *pages(missing: number): Generator<HandOverPage> {
    for (let last_id = 0, failed = 0; last_id < this.outbox.next_id; ) {
      const rows: PendingRow[] = [];
      const is_readable = this.#collect(last_id, rows);
      if (rows.length === 0 && is_readable) break;
      if (this.#bytes > TOTAL_MAX_BYTES) {
        this.#trouble = 'it holds more than an outbox can';
        break;
      }
      failed = rows.length > 0 ? 0 : failed + 1;
      last_id = rows.at(-1)?.id ?? last_id + Math.max(1, failed - SINGLE_STEPS);
      const records = rows.flatMap((row) => this.#record(row));
      this.read += records.length;
      if (records.length > 0) yield { records, lost_records: 0, set_aside: 0, trouble: null };
    }
    const expected = count(this.#expected()) - this.#set_aside;
    const lost_records = Math.max(0, expected - this.read, this.#damaged) + count(missing);
    const trouble = this.#trouble ?? (lost_records > 0 ? 'records are missing or damaged' : null);
    if (trouble === null && this.#set_aside === 0) return;
    yield { records: [], lost_records, set_aside: this.#set_aside, trouble };
  }

  /** How many records are pending by the outbox's own count; the last start may have been under another id. */
  #expected(): unknown {
    const { sandbox_id } = this.#trust;
    if (this.outbox.sandbox_id === sandbox_id) return this.outbox.pending;
    if (this.#is_first_format) return 0;
    const sql = 'SELECT pending FROM sandboxes WHERE sandbox_id = ?';
    return this.#db.prepare(sql).pluck().get(sandbox_id);
  }

  /** Reads a page into `rows`; false where that came upon damage. */
  #collect(last_id: number, rows: PendingRow[]): boolean {
    let bytes = 0;
    try {
      // Not by an index, which may be what is damaged.
      const found =
        this.#db.prepare(`SELECT id, event_id, event_type, sandbox_id, sequence, headers, body, checksum,
        ${this.#is_first_format ? 'NULL' : 'mac'} AS mac, created_at_ms, deadline_ms, due_ms, probe_ms, attempts, failures
        FROM deliveries NOT INDEXED CROSS JOIN records NOT INDEXED USING (id)
        WHERE id > ? AND state = 'pending' AND sandbox_id = ? AND octet_length(body) + octet_length(headers) < ?
        ORDER BY id LIMIT ?`);
      for (const row of found.iterate(last_id, this.#trust.sandbox_id, TEXT_MAX_BYTES, PAGE_RECORDS)) {
        rows.push(row as PendingRow);
        bytes += String((row as PendingRow).body).length;
        if (bytes > PAGE_BYTES) break;
      }
      this.#bytes += bytes;
      return true;
    } catch (error) {
      if (mayPass(error)) throw error;
      this.#trouble = (error as Error).message;
      return false;
    }
  }

  #record(row: PendingRow): HandedOver[] {
    const record = handedOver(row, this.#attempts(row.id), this.#now_ms, this.#trust);
    if (typeof record === 'object') return [record];
    if (record === 'damaged') this.#damaged += 1;
    else this.#set_aside += 1;
    return [];
  }

  /** What cannot be read of them is only missed by people. */
  #attempts(id: number): unknown[] {
    try {
      return this.#db
        .prepare(`SELECT attempt, started_at_ms, duration_ms, status, error, next_attempt_at_ms,
          substr(response_body, 1, 1024) AS response_body FROM attempts WHERE record_id = ? ORDER BY attempt LIMIT ?`)
        .all(id, ATTEMPTS_MAX);
    } catch {
      return [];
    }
  }

  close(): void {
    this.#db.close();
  }
}

/** A count of the outbox's own, or nothing where it is none. */
function count(value: unknown): number {
  return Number.isSafeInteger(value) ? Math.max(0, value as number) : 0;
}
