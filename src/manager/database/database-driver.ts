import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type PostgresDialect,
  SqliteAdapter,
  type SqliteDialect,
} from 'kysely';
import { translateError } from './database-errors.ts';

/** Runs database calls with the patience that the database needs: it may answer late, or not at all. */
export interface QueryGuard {
  /** Runs `work`; with `always` also while the database is known to be lost. */
  run<Result>(work: () => Promise<Result>, always: boolean): Promise<Result>;
  /** Stops the guard's own checks. */
  close(): Promise<void>;
}

/** The state of SQLite's only connection. */
export interface SqliteState {
  /** False after SQLite has rolled back by itself, as on a full disk. */
  readonly inTransaction: boolean;
  /** Throws if another file has taken the place of the database. */
  checkFile(): void;
}

/** Migrations run in one transaction, so that only the first of several processes applies them. Kysely disables this for SQLite. */
class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

/** PostgreSQL's dialect; every failure of the database is reported as `unavailable`. */
export function guardedPostgres(dialect: PostgresDialect, guard: QueryGuard): Dialect {
  return guardedDialect(dialect, null, guard);
}

/** SQLite's dialect; failures are reported as `unavailable`, and every transaction begins as a write. */
export function guardedSqlite(dialect: SqliteDialect, sqlite: SqliteState, guard: QueryGuard): Dialect {
  return guardedDialect(dialect, sqlite, guard);
}

function guardedDialect(dialect: Dialect, sqlite: SqliteState | null, guard: QueryGuard): Dialect {
  return {
    createAdapter: () => (sqlite ? new TransactionalAdapter() : dialect.createAdapter()),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
    createDriver: () => new GuardedDriver(dialect.createDriver(), sqlite, guard),
  };
}

class GuardedDriver implements Driver {
  readonly #driver: Driver;
  readonly #sqlite: SqliteState | null;
  readonly #guard: QueryGuard;
  readonly #wrapped = new WeakMap<DatabaseConnection, DatabaseConnection>();
  readonly #inner = new WeakMap<DatabaseConnection, DatabaseConnection>();

  constructor(driver: Driver, sqlite: SqliteState | null, guard: QueryGuard) {
    this.#driver = driver;
    this.#sqlite = sqlite;
    this.#guard = guard;
  }

  init(): Promise<void> {
    return translating(() => this.#driver.init());
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    let acquiring: Promise<DatabaseConnection> | null = null;
    try {
      const connection = await this.#run(async () => {
        this.#sqlite?.checkFile();
        acquiring = this.#driver.acquireConnection();
        return acquiring;
      });
      return this.#wrap(connection);
    } catch (error) {
      // The connection may still arrive after the caller has given up.
      const late = acquiring as Promise<DatabaseConnection> | null;
      late?.then(
        (connection) => this.#driver.releaseConnection(connection),
        () => {},
      );
      throw error;
    }
  }

  beginTransaction(connection: DatabaseConnection, settings: object): Promise<void> {
    return this.#run(async () => {
      const own = this.#own(connection);
      if (!this.#sqlite) return this.#driver.beginTransaction(own, settings);
      // The last transaction may have failed to roll back.
      if (this.#sqlite.inTransaction) await this.#driver.rollbackTransaction(own);
      // A transaction that reads first and writes later would be refused if another process wrote in between.
      await own.executeQuery(CompiledQuery.raw('begin immediate'));
    });
  }

  commitTransaction(connection: DatabaseConnection): Promise<void> {
    return this.#run(() => this.#driver.commitTransaction(this.#own(connection)));
  }

  /**
   * Never rejects, so that the caller sees the first error. A PostgreSQL connection is only reused outside of a
   * transaction, and the next begin rolls SQLite's back.
   */
  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    if (this.#sqlite && !this.#sqlite.inTransaction) return;
    await this.#run(() => this.#driver.rollbackTransaction(this.#own(connection)), true).catch(() => {});
  }

  releaseConnection(connection: DatabaseConnection): Promise<void> {
    return this.#driver.releaseConnection(this.#own(connection));
  }

  async destroy(): Promise<void> {
    await this.#driver.destroy();
    await this.#guard.close();
  }

  #run<Result>(work: () => Promise<Result>, always = false): Promise<Result> {
    return translating(() => this.#guard.run(work, always));
  }

  #own(connection: DatabaseConnection): DatabaseConnection {
    return this.#inner.get(connection) ?? connection;
  }

  #wrap(connection: DatabaseConnection): DatabaseConnection {
    const known = this.#wrapped.get(connection);
    if (known) return known;
    const made: DatabaseConnection = {
      executeQuery: (query) => this.#run(async () => connection.executeQuery(query)),
      streamQuery: (query, size) => connection.streamQuery(query, size),
    };
    this.#wrapped.set(connection, made);
    this.#inner.set(made, connection);
    return made;
  }
}

async function translating<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw translateError(error);
  }
}
