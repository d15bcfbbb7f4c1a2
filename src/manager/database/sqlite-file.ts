import { closeSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import Sqlite from 'better-sqlite3';
import { type Dialect, type SqliteDatabase, SqliteDialect, type SqliteStatement } from 'kysely';
import { workingClock } from '../../base/clock.ts';
import { syncNow } from '../../base/durable-file.ts';
import { StartError } from '../../contract/errors.ts';
import { guardedSqlite, type SqliteState } from './database-driver.ts';
import { translateError } from './database-errors.ts';
import { SqlitePatience } from './sqlite-patience.ts';

/** How long SQLite may block the process while another holds a lock: when opening, and afterwards. */
const OPENING_BUSY_MS = 2_000;
const BUSY_MS = 2;
/** Size of the statement cache; the least recently used statement is evicted. */
const KEPT_STATEMENTS = 256;

/** Opens the database in a file, and creates it with mode 0600. Throws StartError, whose cause is the database's error. */
export function openSqlite(path: string): Dialect {
  try {
    const file = new SqliteFile(resolve(path));
    const patience = new SqlitePatience(workingClock, () => file.inTransaction);
    return guardedSqlite(new SqliteDialect({ database: file }), file, patience);
  } catch (error) {
    throw new StartError(
      `--database ${path} cannot be opened: ${(error as Error).message}`,
      1,
      translateError(error),
    );
  }
}

/**
 * The database in its file. If the file was removed, it is written again with its whole content, because commits to an
 * unlinked file would be lost with this process. If another file has taken its place, every query is refused.
 */
class SqliteFile implements SqliteDatabase, SqliteState {
  readonly #path: string;
  #database: Sqlite.Database;
  #file: string | null;
  /** Preparing a statement costs about as much as running it. */
  readonly #kept = new Map<string, SqliteStatement>();

  constructor(path: string) {
    this.#path = path;
    this.#database = opened(path);
    this.#file = fileOf(path);
  }

  get inTransaction(): boolean {
    return this.#database.inTransaction;
  }

  prepare(sql: string): SqliteStatement {
    const statement = this.#kept.get(sql) ?? this.#database.prepare(sql);
    this.#kept.delete(sql);
    this.#kept.set(sql, statement);
    if (this.#kept.size > KEPT_STATEMENTS) this.#kept.delete(this.#kept.keys().next().value as string);
    return statement;
  }

  close(): void {
    this.#database.close();
  }

  checkFile(): void {
    const file = fileOf(this.#path);
    if (file === this.#file) return;
    if (file !== null || this.inTransaction) throw new MovedError();
    this.#writeAnew();
  }

  #writeAnew(): void {
    const copy = `${this.#path}-anew`;
    rmSync(copy, { force: true });
    closeSync(openSync(copy, 'w', 0o600));
    this.#database.prepare('vacuum into ?').run(copy);
    syncNow(copy);
    this.#kept.clear();
    this.#database.close();
    // The write-ahead log of the removed file must not be applied to the new one.
    for (const suffix of ['-wal', '-shm']) rmSync(this.#path + suffix, { force: true });
    renameSync(copy, this.#path);
    syncNow(dirname(this.#path));
    this.#database = opened(this.#path);
    this.#file = fileOf(this.#path);
  }
}

function opened(path: string): Sqlite.Database {
  // SQLite gives its other files the mode of this one.
  closeSync(openSync(path, 'a', 0o600));
  const database = new Sqlite(path, { timeout: OPENING_BUSY_MS });
  database.pragma('journal_mode = WAL');
  database.pragma('synchronous = FULL');
  database.pragma(`busy_timeout = ${BUSY_MS}`);
  return database;
}

/** Device and inode of a file; null if it does not exist. */
function fileOf(path: string): string | null {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat ? `${stat.dev}:${stat.ino}` : null;
}

class MovedError extends Error {
  readonly code = 'SQLITE_READONLY_DBMOVED';

  constructor() {
    super('the --database file was replaced by another file');
  }
}
