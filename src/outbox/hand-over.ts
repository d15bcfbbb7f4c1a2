import { lstatSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { Clock } from '../base/clock.ts';
import { CatalogueError } from '../contract/errors.ts';
import { databasePath, hasLostHeader } from './database-file.ts';
import { type HandedOver, type HandedOverAttempt, handedOver, type PendingRow } from './handed-over.ts';
import { HighWater } from './high-water.ts';
import { hasOwnSchema } from './schema.ts';
import { prepareStateDir } from './state-files.ts';

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
/** So many ids of a damaged outbox are tried one by one; where all of them fail, ever more are stepped over. */
const SINGLE_STEPS = 256;
/** A mark is two numbers and an id. */
const MARK_MAX_BYTES = 1024;

/** What the outbox says of itself. */
interface OutboxRow {
  sandbox_id: string | null;
  next_sequence: number;
  next_id: number;
  pending: number;
  clock_ms: number;
  clock_wall_ms: number;
}

/**
 * Reads every record that a stopped daemon had not delivered, as stored. The outbox stays as it is: read again, it
 * gives the same. It is taken for what processes of the sandbox may have made of it: neither a link nor a schema or
 * row of their making gets further than this. Throws `conflict` while a daemon still has it.
 * Source: contract section 7, "A deletion loses no event".
 */
export function* readUndelivered(source: HandOverSource, clock: Clock): Generator<HandOverPage> {
  let mark_pending = 0;
  let reader: Reader | null = null;
  try {
    const mark = readMark(source, clock);
    mark_pending = mark?.pending ?? 0;
    prepareStateDir(source.state_dir);
    const db = openStopped(source.state_dir);
    if (db === null && mark === null) return;
    if (db === null) return yield nothing(mark_pending, 'the outbox is missing or has lost its beginning');
    reader = new Reader(db, source.sandbox_id, clock);
    const sequence = reader.outbox.sandbox_id === source.sandbox_id ? (mark?.sequence ?? 0) : 0;
    yield* reader.pages(Math.min(mark_pending, Math.max(0, sequence + 1 - reader.outbox.next_sequence)));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'SQLITE_BUSY') throw new CatalogueError('conflict', 'A daemon still has the outbox.');
    yield nothing(Math.max(0, mark_pending - (reader?.read ?? 0)), message);
  } finally {
    reader?.close();
  }
}

function nothing(lost_records: number, trouble: string): HandOverPage {
  return { records: [], lost_records, trouble };
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
  if (!lstatSync(path, { throwIfNoEntry: false }) || hasLostHeader(path)) return null;
  const db = new Database(path, { timeout: 0, fileMustExist: true });
  try {
    db.pragma('locking_mode = EXCLUSIVE');
    db.pragma('trusted_schema = OFF');
    db.pragma('query_only = ON');
    if (!hasOwnSchema(db)) throw new Error('the outbox has tables that are not of its daemon');
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Steps through the pending records of an outbox that may be damaged. */
class Reader {
  readonly #db: Database.Database;
  readonly #sandbox_id: string;
  readonly #now_ms: number;
  readonly outbox: OutboxRow;
  #damaged = 0;
  #trouble: string | null = null;
  /** Records that were whole. */
  read = 0;

  constructor(db: Database.Database, sandbox_id: string, clock: Clock) {
    this.#db = db;
    this.#sandbox_id = sandbox_id;
    this.outbox = db.prepare('SELECT * FROM outbox').get() as OutboxRow;
    const { clock_ms, clock_wall_ms } = this.outbox;
    this.#now_ms = clock_ms + Math.max(0, clock.wallMs() - clock_wall_ms);
  }

  /** `missing`: records that are gone from the end of the outbox without a trace in it. */
  *pages(missing: number): Generator<HandOverPage> {
    const is_ours = this.outbox.sandbox_id === this.#sandbox_id;
    for (let last_id = 0, failed = 0; is_ours && last_id < this.outbox.next_id; ) {
      const rows: PendingRow[] = [];
      const is_readable = this.#collect(last_id, rows);
      if (rows.length === 0 && is_readable) break;
      failed = rows.length > 0 ? 0 : failed + 1;
      last_id = rows.at(-1)?.id ?? last_id + Math.max(1, failed - SINGLE_STEPS);
      const records = rows.flatMap((row) => this.#record(row));
      this.read += records.length;
      if (records.length > 0) yield { records, lost_records: 0, trouble: null };
    }
    const expected = is_ours ? this.outbox.pending : 0;
    const lost_records = Math.max(0, expected - this.read, this.#damaged) + missing;
    if (lost_records > 0) yield nothing(lost_records, this.#trouble ?? 'records are missing or damaged');
  }

  /** Reads a page into `rows`; false where that came upon damage. */
  #collect(last_id: number, rows: PendingRow[]): boolean {
    let bytes = 0;
    try {
      // Not by an index, which may be what is damaged.
      const found = this.#db.prepare(`SELECT id, event_id, event_type, sequence, headers, body, checksum,
        created_at_ms, deadline_ms, due_ms, probe_ms, attempts, failures
        FROM deliveries NOT INDEXED CROSS JOIN records NOT INDEXED USING (id)
        WHERE id > ? AND state = 'pending' AND sandbox_id = ? AND length(body) + length(headers) < ?
        ORDER BY id LIMIT ?`);
      for (const row of found.iterate(last_id, this.#sandbox_id, TEXT_MAX_BYTES, PAGE_RECORDS)) {
        rows.push(row as PendingRow);
        bytes += String((row as PendingRow).body).length;
        if (bytes > PAGE_BYTES) break;
      }
      return true;
    } catch (error) {
      this.#trouble = (error as Error).message;
      return false;
    }
  }

  #record(row: PendingRow): HandedOver[] {
    const record = handedOver(row, this.#attempts(row.id), this.#now_ms);
    if (record) return [record];
    this.#damaged += 1;
    return [];
  }

  /** What cannot be read of them is only missed by people. */
  #attempts(id: number): HandedOverAttempt[] {
    try {
      return this.#db
        .prepare(`SELECT attempt, started_at_ms, duration_ms, status, error, next_attempt_at_ms,
          substr(response_body, 1, 1024) AS response_body FROM attempts WHERE record_id = ? ORDER BY attempt LIMIT ?`)
        .all(id, ATTEMPTS_MAX) as HandedOverAttempt[];
    } catch {
      return [];
    }
  }

  close(): void {
    this.#db.close();
  }
}
