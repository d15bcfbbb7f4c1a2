import { closeSync, openSync } from 'node:fs';
import Sqlite from 'better-sqlite3';
import {
  CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  type Dialect as KyselyDialect,
  type Transaction as KyselyTransaction,
  Migrator,
  PostgresDialect,
  SqliteAdapter,
  SqliteDialect,
} from 'kysely';
import pg from 'pg';
import { CatalogueError, StartError } from '../contract/errors.ts';
import { migrationsFor } from './migrations.ts';
import type { Dialect, Tables } from './tables.ts';

/** What stores read with: the database itself, or a transaction in it. */
export type Queries = Kysely<Tables>;

/** Every write belongs to one. On SQLite it holds the only right to write from its begin on. */
export type Transaction = KyselyTransaction<Tables>;

export interface Database {
  readonly db: Queries;
  readonly dialect: Dialect;
  close(): Promise<void>;
}

/** How long another process may keep the right to write before a write is refused. */
const SQLITE_BUSY_MS = 2_000;
/** Connections of one replica; what needs more waits its turn. */
const POSTGRES_CONNECTIONS = 20;
/** A database that takes longer does not answer: the caller is told `unavailable` within 2 s. */
const POSTGRES_CONNECT_MS = 1_500;
const POSTGRES_QUERY_MS = 1_800;
/** A replica that stands still in the middle of a transaction loses it, and its locks, after so long. */
const POSTGRES_IDLE_TRANSACTION_MS = 10_000;
const UNAVAILABLE_RETRY_S = 1;
/** PostgreSQL's type of whole numbers with eight bytes. */
const INT8 = 20;

/**
 * Opens the database of a `--database` URL and brings its tables up to date; several replicas may do so at once.
 * Whatever goes wrong with the database later is `unavailable`. Throws StartError. Source: contract section 7.
 */
export async function openDatabase(url: string): Promise<Database> {
  const dialect: Dialect = url.startsWith('sqlite:') ? 'sqlite' : 'postgres';
  const opened = dialect === 'sqlite' ? openSqlite(url.slice('sqlite:'.length)) : openPostgres(url);
  const db = new Kysely<Tables>({ dialect: answering(opened) });
  const provider = { getMigrations: async () => migrationsFor(dialect) };
  const { error } = await new Migrator({ db, provider }).migrateToLatest();
  if (error) {
    await db.destroy();
    const { message, cause } = error as Error;
    throw new StartError(
      `--database cannot be used: ${(cause as Error | undefined)?.message ?? message}`,
      1,
      error,
    );
  }
  return { db, dialect, close: () => db.destroy() };
}

function openSqlite(path: string): KyselyDialect {
  try {
    // Its other files take the mode of this one.
    closeSync(openSync(path, 'a', 0o600));
    const database = new Sqlite(path, { timeout: SQLITE_BUSY_MS });
    database.pragma('journal_mode = WAL');
    database.pragma('synchronous = FULL');
    return new SqliteDialect({ database });
  } catch (error) {
    throw new StartError(`--database ${path} cannot be opened: ${(error as Error).message}`, 1, error);
  }
}

function openPostgres(url: string): KyselyDialect {
  const pool = new pg.Pool({
    connectionString: url,
    max: POSTGRES_CONNECTIONS,
    connectionTimeoutMillis: POSTGRES_CONNECT_MS,
    query_timeout: POSTGRES_QUERY_MS,
    idle_in_transaction_session_timeout: POSTGRES_IDLE_TRANSACTION_MS,
    keepAlive: true,
    types: {
      // Times and counts: all of them are exact as numbers.
      getTypeParser: ((oid: number, format?: 'text') =>
        oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
    },
  });
  // An idle connection that breaks is replaced when it is next needed.
  pool.on('error', () => {});
  return new PostgresDialect({ pool });
}

/** Tables are made inside of one transaction, that of the first to come; the library does not trust SQLite with that. */
class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

/** The dialect, with every trouble of the database told as `unavailable` and with writes that begin as writes. */
function answering(dialect: KyselyDialect): KyselyDialect {
  const is_sqlite = dialect instanceof SqliteDialect;
  return {
    createAdapter: () => (is_sqlite ? new TransactionalAdapter() : dialect.createAdapter()),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
    createDriver: () => answeringDriver(dialect.createDriver(), is_sqlite),
  };
}

function answeringDriver(driver: Driver, is_sqlite: boolean): Driver {
  const wrapped = new WeakMap<DatabaseConnection, DatabaseConnection>();
  const inner = new WeakMap<DatabaseConnection, DatabaseConnection>();
  const own = (connection: DatabaseConnection) => inner.get(connection) ?? connection;
  return {
    init: () => telling(() => driver.init()),
    async acquireConnection() {
      const connection = await telling(() => driver.acquireConnection());
      const known = wrapped.get(connection);
      if (known) return known;
      const made: DatabaseConnection = {
        executeQuery: (query) => telling(() => connection.executeQuery(query)),
        streamQuery: (query, size) => connection.streamQuery(query, size),
      };
      wrapped.set(connection, made);
      inner.set(made, connection);
      return made;
    },
    beginTransaction: (connection, settings) =>
      telling(async () => {
        // A transaction that reads first and writes then would be refused where another wrote in between.
        if (is_sqlite) await own(connection).executeQuery(CompiledQuery.raw('begin immediate'));
        else await driver.beginTransaction(own(connection), settings);
      }),
    commitTransaction: (connection) => telling(() => driver.commitTransaction(own(connection))),
    rollbackTransaction: (connection) => telling(() => driver.rollbackTransaction(own(connection))),
    releaseConnection: (connection) => driver.releaseConnection(own(connection)),
    destroy: () => driver.destroy(),
  };
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
