import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type PostgresDialect,
  SqliteAdapter,
  type SqliteDialect,
} from 'kysely';
import { told } from './database-errors.ts';

/** How a database is looked after that may not answer, or not at once. */
export interface Watching {
  /** Does something with it; `always`: also while it is known to be lost. */
  watch<Result>(work: () => Promise<Result>, always: boolean): Promise<Result>;
  close(): Promise<void>;
}

/** What SQLite's one connection tells of itself. */
export interface SqliteState {
  /** False where SQLite has rolled back by itself, as on a full disk. */
  readonly inTransaction: boolean;
  /** Throws where the file is no longer where it was opened. */
  demandFile(): void;
}

/** Tables are made inside of one transaction, that of the first to come; the library does not trust SQLite with that. */
class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

/** PostgreSQL's dialect, with every trouble of the database told as `unavailable`. */
export function answeringPostgres(dialect: PostgresDialect, watching: Watching): Dialect {
  return answeringDialect(dialect, null, watching);
}

/** SQLite's dialect with the same, and with transactions that begin as writes. */
export function answeringSqlite(dialect: SqliteDialect, sqlite: SqliteState, watching: Watching): Dialect {
  return answeringDialect(dialect, sqlite, watching);
}

function answeringDialect(dialect: Dialect, sqlite: SqliteState | null, watching: Watching): Dialect {
  return {
    createAdapter: () => (sqlite ? new TransactionalAdapter() : dialect.createAdapter()),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
    createDriver: () => new AnsweringDriver(dialect.createDriver(), sqlite, watching),
  };
}

class AnsweringDriver implements Driver {
  readonly #driver: Driver;
  readonly #sqlite: SqliteState | null;
  readonly #watching: Watching;
  readonly #wrapped = new WeakMap<DatabaseConnection, DatabaseConnection>();
  readonly #inner = new WeakMap<DatabaseConnection, DatabaseConnection>();

  constructor(driver: Driver, sqlite: SqliteState | null, watching: Watching) {
    this.#driver = driver;
    this.#sqlite = sqlite;
    this.#watching = watching;
  }

  init(): Promise<void> {
    return telling(() => this.#driver.init());
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    let acquiring: Promise<DatabaseConnection> | null = null;
    try {
      const connection = await this.#tell(async () => {
        this.#sqlite?.demandFile();
        acquiring = this.#driver.acquireConnection();
        return acquiring;
      });
      return this.#wrap(connection);
    } catch (error) {
      // It may be given after all, and nobody waits for it any more.
      const late = acquiring as Promise<DatabaseConnection> | null;
      late?.then(
        (connection) => this.#driver.releaseConnection(connection),
        () => {},
      );
      throw error;
    }
  }

  beginTransaction(connection: DatabaseConnection, settings: object): Promise<void> {
    return this.#tell(async () => {
      const own = this.#own(connection);
      if (!this.#sqlite) return this.#driver.beginTransaction(own, settings);
      // What could not be rolled back when it failed is now.
      if (this.#sqlite.inTransaction) await this.#driver.rollbackTransaction(own);
      // A transaction that reads first and writes then would be refused where another wrote in between.
      await own.executeQuery(CompiledQuery.raw('begin immediate'));
    });
  }

  commitTransaction(connection: DatabaseConnection): Promise<void> {
    return this.#tell(() => this.#driver.commitTransaction(this.#own(connection)));
  }

  /**
   * Never rejects, so that the caller is told what failed first: PostgreSQL's connection is not used again unless it is
   * outside of a transaction, and SQLite's is brought out of it by the next begin.
   */
  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    if (this.#sqlite && !this.#sqlite.inTransaction) return;
    await this.#tell(() => this.#driver.rollbackTransaction(this.#own(connection)), true).catch(() => {});
  }

  releaseConnection(connection: DatabaseConnection): Promise<void> {
    return this.#driver.releaseConnection(this.#own(connection));
  }

  async destroy(): Promise<void> {
    await this.#driver.destroy();
    await this.#watching.close();
  }

  #tell<Result>(work: () => Promise<Result>, always = false): Promise<Result> {
    return telling(() => this.#watching.watch(work, always));
  }

  #own(connection: DatabaseConnection): DatabaseConnection {
    return this.#inner.get(connection) ?? connection;
  }

  #wrap(connection: DatabaseConnection): DatabaseConnection {
    const known = this.#wrapped.get(connection);
    if (known) return known;
    const made: DatabaseConnection = {
      executeQuery: (query) => this.#tell(async () => connection.executeQuery(query)),
      streamQuery: (query, size) => connection.streamQuery(query, size),
    };
    this.#wrapped.set(connection, made);
    this.#inner.set(made, connection);
    return made;
  }
}

async function telling<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw told(error);
  }
}
