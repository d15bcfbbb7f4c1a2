import { lstatSync, rmSync, statSync } from 'node:fs';
import Sqlite, { type Database, type Statement } from 'better-sqlite3';
import { hasLostHeader } from '../files/database-file.ts';
import { isOutboxRow } from '../rows/outbox-row.ts';
import type { OutboxRow } from '../rows/rows.ts';
import { ATTEMPT_COLUMNS, hasOwnSchema } from '../rows/schema.ts';
import { troubleOf } from '../store-errors.ts';
import { FirstPage } from './first-page.ts';
import { leafBoundaries } from './leaf-boundaries.ts';

/** A row whose texts are longer was written by no daemon; it is not even read. */
const TEXT_MAX_BYTES = 8 * 1024 * 1024;
const ATTEMPTS_MAX = 1_000;
const TREE_ROWS = 1_000;
/** The columns without which a record is nothing. They are null where they are too long, so that it is passed. */
const TEXT_NAMES = ['id', 'headers', 'body', 'checksum'];
const IS_FITTING = `coalesce(length(headers), 0) + coalesce(length(body), 0) < ${TEXT_MAX_BYTES}`;
const TEXTS = `id, checksum, iif(${IS_FITTING}, headers, NULL) AS headers, iif(${IS_FITTING}, body, NULL) AS body`;
/** Ids in a row that are tried one by one on each page: in one whose ids are out of order the table does not find the next. */
const PAGE_STEPS = 64;
/** So many ids that are out of order are read past: a changed one puts two of them out of order. */
const OUT_OF_ORDER_MAX = 1_000;

/** How far a damaged outbox was read. */
interface Search {
  /** Where to read on; null for an end of the table. */
  id: number | null;
  /** Ids after which a lost page may end, ascending; null until one is met. */
  boundaries: number[] | null;
  /** How many of them are not above `id`. */
  passed: number;
  /** How many ids came out of order. */
  out_of_order: number;
}

/** A row of any table as it was found: no column need be of the type that it should have. */
export type FoundRow = Record<string, unknown>;

/** A record as it was found, with what became of it as far as that can be read. */
export interface ReadableRecord {
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
  /** How many ids were looked for. */
  probes = 0;
  readonly #db: Database;
  readonly #path: string;
  readonly #first_page: FirstPage;
  readonly #statements = new Map<string, Statement>();
  /** The names of a record's columns that are not in TEXTS. */
  readonly #other_names: string[];

  private constructor(db: Database, path: string, first_page: FirstPage) {
    this.#db = db;
    this.#path = path;
    this.#first_page = first_page;
    const names = db.prepare("SELECT name FROM pragma_table_info('records')").pluck().all() as string[];
    this.#other_names = names.filter((name) => !TEXT_NAMES.includes(name));
  }

  /** Opens a damaged outbox; null where nothing in it can be read. */
  static open(path: string): DamagedOutbox | null {
    const first_page = new FirstPage(path);
    let db: Database | null = null;
    try {
      if (!lstatSync(path, { throwIfNoEntry: false }) || hasLostHeader(path)) first_page.replace();
      db = openOwn(path) ?? (first_page.replace() ? openOwn(path) : null);
      if (db) return new DamagedOutbox(db, path, first_page);
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
  *records(): Generator<ReadableRecord> {
    const search: Search = { id: null, boundaries: null, passed: 0, out_of_order: 0 };
    while (!(yield* this.#scan('ASC', search)) && this.#step(search)) {
      // What has a changed id is not found by it, but stands before the first that is found.
      yield* this.#scan('DESC', { ...search });
    }
    if (search.boundaries || search.out_of_order > 0) yield* this.newestFirst();
  }

  /** The same from the end, up to the first that cannot be read. */
  *newestFirst(): Generator<ReadableRecord> {
    yield* this.#scan('DESC', { id: null, boundaries: null, passed: 0, out_of_order: 0 });
  }

  /** Reads on, past ids that are out of order; true where it came to the end. */
  *#scan(order: 'ASC' | 'DESC', search: Search): Generator<ReadableRecord, boolean> {
    // Not by an index, which may be what is damaged; from an end, a search for the first id could meet damage, too.
    const from = search.id === null ? '' : `WHERE id ${order === 'ASC' ? '>=' : '<='} ${search.id}`;
    const sql = `SELECT ${TEXTS} FROM records NOT INDEXED ${from} ORDER BY id ${order}`;
    const rows = readable(() => this.#db.prepare(sql).iterate());
    let last_ids: number[] = [];
    try {
      for (;;) {
        const next = readable(() => rows?.next());
        if (next?.done) return true;
        // A tree whose pages lead back to earlier ones has no end.
        if (!next || search.out_of_order > OUT_OF_ORDER_MAX) break;
        const record = next.value as ReadableRecord['record'];
        yield this.#found(record);
        const last_id = last_ids.at(-1) ?? record.id;
        if (order === 'ASC' ? record.id < last_id : record.id > last_id) search.out_of_order += 1;
        last_ids = [...last_ids.slice(-2), record.id];
      }
    } finally {
      readable(() => rows?.return?.());
    }
    // The middle one: one of the last ids may be what was changed.
    const [first_id = 0, middle_id = first_id] = last_ids.sort((a, b) => a - b);
    search.id = Math.max(search.id ?? 0, last_ids.length > 2 ? middle_id : first_id) + 1;
    return false;
  }

  /**
   * Looks for the next record that can be read; false where there is none. On a page that can be read the table says the
   * next id; where one cannot be, the inner pages say how far it reaches.
   */
  #step(search: Search): boolean {
    const record = `SELECT ${TEXTS} FROM records NOT INDEXED WHERE id = ?`;
    // Not `id > ?`: what comes after the last id of a page that cannot be read is only looked for on that page.
    const next = 'SELECT id FROM records NOT INDEXED WHERE id >= ? ORDER BY id LIMIT 1';
    search.boundaries ??= leafBoundaries(this.#path);
    const { boundaries } = search;
    let failed = 0;
    let doublings = 0;
    for (let id = Math.max(search.id ?? 0, 1); id < Number.MAX_SAFE_INTEGER; ) {
      search.id = id;
      this.probes += 1;
      if (readable(() => this.#statement(record).get(id))) return true;
      while ((boundaries[search.passed] ?? Number.POSITIVE_INFINITY) <= id) {
        search.passed += 1;
        failed = 0;
      }
      failed += 1;
      if (failed <= PAGE_STEPS) {
        id += 1;
        continue;
      }
      const next_id = readable(
        () =>
          this.#statement(next)
            .pluck()
            .get(id + 1) ?? null,
      );
      if (next_id === null) return false;
      const boundary = boundaries[search.passed];
      if (Number(next_id) > id) id = Number(next_id);
      else if (boundary !== undefined) id = boundary;
      else {
        id += 2 ** doublings;
        doublings += 1;
      }
    }
    return false;
  }

  /** `record`: the columns without which it is nothing; each other one is null where it cannot be read. */
  #found(record: ReadableRecord['record']): ReadableRecord {
    Object.assign(record, this.#columns(record.id, this.#other_names) ?? this.#eachColumn(record.id));
    const delivery = 'SELECT * FROM deliveries NOT INDEXED WHERE id = ?';
    const attempts = `SELECT ${ATTEMPT_COLUMNS} FROM attempts WHERE record_id = ? ORDER BY attempt LIMIT ${ATTEMPTS_MAX}`;
    return {
      record,
      delivery: (readable(() => this.#statement(delivery).get(record.id)) as FoundRow | undefined) ?? null,
      attempts: (readable(() => this.#statement(attempts).all(record.id)) as FoundRow[] | undefined) ?? [],
    };
  }

  #eachColumn(id: number): FoundRow {
    return Object.fromEntries(
      this.#other_names.map((name) => [name, this.#columns(id, [name])?.[name] ?? null]),
    );
  }

  /** Some columns of the record with an id; null where they cannot be read, or are too long together. */
  #columns(id: number, names: string[]): FoundRow | null {
    const length = names.map((name) => `coalesce(length("${name}"), 0)`).join(' + ');
    const sql = `SELECT "${names.join('", "')}" FROM records NOT INDEXED WHERE id = ? AND ${length} < ${TEXT_MAX_BYTES}`;
    return (readable(() => this.#statement(sql).get(id)) as FoundRow | undefined) ?? null;
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
    if (troubleOf(error) === 'away') {
      db.close();
      throw error;
    }
  }
  db.close();
  return null;
}

/** Undefined if the contents cannot be read. Throws if the disk cannot be used right now. */
function readable<Result>(read: () => Result): Result | undefined {
  try {
    return read();
  } catch (error) {
    if (troubleOf(error) === 'away') throw error;
    return undefined;
  }
}
