import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  SqliteAdapter,
  SqliteDialect,
} from 'kysely';
import { CatalogueError } from '../contract/errors.ts';

const UNAVAILABLE_RETRY_S = 1;

/** How a database is looked after that may not answer. */
export interface Watching {
  /** Does something with it; `always`: also while it is known to be lost. */
  watch<Result>(work: () => Promise<Result>, always: boolean): Promise<Result>;
  close(): Promise<void>;
}

/** The file answers, or the process stands still with it. */
const UNWATCHED: Watching = { watch: (work) => work(), close: async () => {} };

/** Tables are made inside of one transaction, that of the first to come; the library does not trust SQLite with that. */
class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

/** The dialect, with every trouble of the database told as `unavailable` and with writes that begin as writes. */
export function answeringDialect(dialect: Dialect, watching: Watching = UNWATCHED): Dialect {
  const is_sqlite = dialect instanceof SqliteDialect;
  return {
    createAdapter: () => (is_sqlite ? new TransactionalAdapter() : dialect.createAdapter()),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
    createDriver: () => new AnsweringDriver(dialect.createDriver(), is_sqlite, watching),
  };
}

class AnsweringDriver implements Driver {
  readonly #driver: Driver;
  readonly #is_sqlite: boolean;
  readonly #watching: Watching;
  readonly #wrapped = new WeakMap<DatabaseConnection, DatabaseConnection>();
  readonly #inner = new WeakMap<DatabaseConnection, DatabaseConnection>();

  constructor(driver: Driver, is_sqlite: boolean, watching: Watching) {
    this.#driver = driver;
    this.#is_sqlite = is_sqlite;
    this.#watching = watching;
  }

  init(): Promise<void> {
    return telling(() => this.#driver.init());
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    let acquiring: Promise<DatabaseConnection> | null = null;
    try {
      const connection = await this.#tell(() => {
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
      // A transaction that reads first and writes then would be refused where another wrote in between.
      if (this.#is_sqlite) await this.#own(connection).executeQuery(CompiledQuery.raw('begin immediate'));
      else await this.#driver.beginTransaction(this.#own(connection), settings);
    });
  }

  commitTransaction(connection: DatabaseConnection): Promise<void> {
    return this.#tell(() => this.#driver.commitTransaction(this.#own(connection)));
  }

  /** Asked for in any case: the connection is used again when the database is back. */
  rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    return this.#tell(() => this.#driver.rollbackTransaction(this.#own(connection)), true);
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
    throw isTrouble(error as DatabaseError) ? unavailable(error as Error) : error;
  }
}

interface DatabaseError extends Error {
  code?: string;
}

/** SQLite: the file or its disk; PostgreSQL: connection, resources, operator, system, a lock or time that ran out. */
function isTrouble({ code = '', message }: DatabaseError): boolean {
  if (/^SQLITE_(IOERR|FULL|BUSY|LOCKED|CANTOPEN|READONLY|CORRUPT|NOTADB|NOMEM|PROTOCOL)/.test(code))
    return true;
  if (/^(08|25006|28|3D000|40001|40P01|53|55P03|57|58|XX)/.test(code) && code.length === 5) return true;
  if (/^(E[A-Z]+|EAI_\w+)$/.test(code)) return true;
  return /timeout|[Cc]onnection terminated|not queryable|database connection is not open/.test(message);
}

function unavailable(error: DatabaseError): CatalogueError {
  const made = new CatalogueError('unavailable', 'The database cannot be used at present.', {
    retry_after_s: UNAVAILABLE_RETRY_S,
  });
  made.cause = error;
  return made;
}
