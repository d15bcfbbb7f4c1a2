import { lstatSync, rmSync, statSync } from 'node:fs';
import Sqlite, { type Database, type Statement } from 'better-sqlite3';
import { hasLostHeader } from '../files/database-file.ts';
import { isOutboxRow } from '../rows/outbox-row.ts';
import type { OutboxRow } from '../rows/rows.ts';
import { hasOwnSchema } from '../rows/schema.ts';
import { troubleOf } from '../store-errors.ts';
import { FirstPage } from './first-page.ts';

/** A row whose texts are longer was written by no daemon; it is not even read. */
const TEXT_MAX_BYTES = 8 * 1024 * 1024;
const ATTEMPTS_MAX = 1_000;
const TREE_ROWS = 1_000;
/** So many ids that cannot be read are tried one by one; where all of them fail, ever more are stepped over. */
const SINGLE_STEPS = 20_000;

/** A row of any table as it was found: no column need be of the type that it should have. */
export type FoundRow = Record<string, unknown>;

/** A record as it was found, with what became of it as far as that can be read. */
export interface FoundRecord {
  record: FoundRow & { id: number };
  delivery: FoundRow | null;
  attempts: FoundRow[];
}

/**
 * A damaged outbox that was set aside, read record by record past whatever cannot be read. Its first page, which holds
 * nothing but what every outbox has, is replaced for the time of the reading where it is lost; once closed under
 * another name, its files are as they were found. Reads throw where the disk, and not what is on it, is in trouble.
 */
export class DamagedOutbox {
  readonly #db: Database;
  readonly #first_page: FirstPage;
  readonly #statements = new Map<string, Statement>();
  /** A record's columns: null where they are too long together, so that the record is passed like any other. */
  readonly #columns: string;

  private constructor(db: Database, first_page: FirstPage) {
    this.#db = db;
    this.#first_page = first_page;
    const names = db.prepare("SELECT name FROM pragma_table_info('records')").pluck().all() as string[];
    const length = names.map((name) => `coalesce(length("${name}"), 0)`).join(' + ');
    const fitting = (name: string) =>
      `CASE WHEN ${length} < ${TEXT_MAX_BYTES} THEN "${name}" END AS "${name}"`;
    this.#columns = names.map((name) => (name === 'id' ? name : fitting(name))).join(', ');
  }

  /** Opens a damaged outbox; null where nothing in it can be read. */
  static open(path: string): DamagedOutbox | null {
    const first_page = new FirstPage(path);
    let db: Database | null = null;
    try {
      if (!lstatSync(path, { throwIfNoEntry: false }) || hasLostHeader(path)) first_page.replace();
      db = openOwn(path) ?? (first_page.replace() ? openOwn(path) : null);
      if (db) return new DamagedOutbox(db, first_page);
    } catch (error) {
      db?.close();
      first_page.restore(path);
      throw error;
    }
    first_page.restore(path);
    return null;
  }

  /** The outbox's own row; null where it is damaged. */
  outbox(): OutboxRow | null {
    const row = readable(() => this.#statement('SELECT * FROM outbox').get()) as OutboxRow | undefined;
    return row && isOutboxRow(row) ? row : null;
  }

  /** Every record that can be read, in the order of their ids as far as that is whole; some may come twice. */
  *records(): Generator<FoundRecord> {
    const passed = { id: Number.NEGATIVE_INFINITY };
    if (yield* this.#scan('ASC', passed)) return;
    yield* this.#step(Math.max(passed.id, 0));
    yield* this.newestFirst();
  }

  /** The same from the end, up to the first that cannot be read. */
  *newestFirst(): Generator<FoundRecord> {
    yield* this.#scan('DESC', { id: Number.POSITIVE_INFINITY });
  }

  /** True where it came to the end. `passed.id`: the last one that was read. */
  *#scan(order: 'ASC' | 'DESC', passed: { id: number }): Generator<FoundRecord, boolean> {
    // Not by an index, which may be what is damaged.
    const sql = `SELECT ${this.#columns} FROM records NOT INDEXED ORDER BY id ${order}`;
    const rows = readable(() => this.#db.prepare(sql).iterate());
    if (!rows) return false;
    try {
      for (;;) {
        const next = readable(() => rows.next());
        if (!next || next.done) return next !== undefined;
        const record = next.value as FoundRecord['record'];
        // A tree whose pages lead back to earlier ones has no end.
        if (order === 'ASC' ? record.id <= passed.id : record.id >= passed.id) return false;
        passed.id = record.id;
        yield this.#found(record);
      }
    } finally {
      readable(() => rows.return?.());
    }
  }

  /** Looks for each record by its id. */
  *#step(from_id: number): Generator<FoundRecord> {
    const sql = `SELECT ${this.#columns} FROM records NOT INDEXED WHERE id > ? ORDER BY id LIMIT 1`;
    for (let id = from_id, failed = 0; id < Number.MAX_SAFE_INTEGER; ) {
      const found = readable(() => this.#statement(sql).get(id) ?? null);
      if (found === null) return;
      const record = found as FoundRecord['record'] | undefined;
      const is_next = record !== undefined && record.id > id;
      failed = is_next ? 0 : failed + 1;
      id = is_next ? record.id : id + 2 ** Math.min(40, Math.max(0, failed - SINGLE_STEPS));
      if (record) yield this.#found(record);
    }
  }

  #found(record: FoundRecord['record']): FoundRecord {
    const delivery = 'SELECT * FROM deliveries NOT INDEXED WHERE id = ?';
    const attempts = `SELECT attempt, started_at_ms, duration_ms, status, error, next_attempt_at_ms,
      substr(response_body, 1, 1024) AS response_body
      FROM attempts WHERE record_id = ? ORDER BY attempt LIMIT ${ATTEMPTS_MAX}`;
    return {
      record,
      delivery: (readable(() => this.#statement(delivery).get(record.id)) as FoundRow | undefined) ?? null,
      attempts: (readable(() => this.#statement(attempts).all(record.id)) as FoundRow[] | undefined) ?? [],
    };
  }

  /** The watched tree, as far as it can be read. */
  *tree(): Generator<{ id: number; entry: string }[]> {
    const sql = 'SELECT id, entry FROM tree WHERE id > ? ORDER BY id LIMIT ?';
    for (let last_id = Number.MIN_SAFE_INTEGER; ; ) {
      const rows = readable(() => this.#statement(sql).all(last_id, TREE_ROWS)) as FoundRow[] | undefined;
      const whole = (rows ?? []).filter(
        (row): row is { id: number; entry: string } =>
          Number.isSafeInteger(row.id) && typeof row.entry === 'string',
      );
      yield whole;
      const next_id = whole.at(-1)?.id ?? last_id;
      if (next_id <= last_id) return;
      last_id = next_id;
    }
  }

  #statement(sql: string): Statement {
    const statement = this.#statements.get(sql) ?? this.#db.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  /** `path`: its name by now. Where that is another one, SQLite leaves its files as they are. */
  close(path: string): void {
    readable(() => this.#db.close());
    this.#first_page.restore(path);
    // Made by the reading, where there was none.
    if (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size === 0) rmSync(`${path}-wal`);
  }
}

/** Opens what has the outbox's tables and nothing else: no view or trigger runs when it is read. */
function openOwn(path: string): Database | null {
  const db = readable(() => new Sqlite(path, { timeout: 0, fileMustExist: true }));
  if (!db) return null;
  try {
    db.pragma('locking_mode = EXCLUSIVE');
    db.pragma('trusted_schema = OFF');
    db.pragma('query_only = ON');
    if (hasOwnSchema(db)) return db;
  } catch (error) {
    if (isPassing(error)) {
      db.close();
      throw error;
    }
  }
  db.close();
  return null;
}

/** Undefined where the contents cannot be read. Throws where the disk cannot be used at present. */
function readable<Result>(read: () => Result): Result | undefined {
  try {
    return read();
  } catch (error) {
    if (isPassing(error)) throw error;
    return undefined;
  }
}

function isPassing(error: unknown): boolean {
  const { code } = error as { code?: string };
  // A statement that cannot be prepared, or one whose value cannot be taken, meets the same again.
  return troubleOf(error) === 'away' && code !== 'SQLITE_ERROR' && code !== undefined;
}
