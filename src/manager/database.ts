import { closeSync, openSync } from 'node:fs';
import Sqlite from 'better-sqlite3';
import {
  Kysely,
  type Dialect as KyselyDialect,
  type Transaction as KyselyTransaction,
  Migrator,
  PostgresDialect,
  SqliteDialect,
} from 'kysely';
import pg from 'pg';
import { systemClock } from '../base/clock.ts';
import { StartError } from '../contract/errors.ts';
import { answeringDialect } from './database-driver.ts';
import { DatabaseWatch } from './database-watch.ts';
import { migrationsFor } from './migrations.ts';
import { preparingOnce } from './prepared-database.ts';
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
/** How long one that answers may take for a connection or a query, waiting for locks included. */
const POSTGRES_WAIT_MS = 10_000;
/** A replica that stands still in the middle of a transaction loses it, and its locks, after so long. */
const POSTGRES_IDLE_TRANSACTION_MS = 10_000;
/** PostgreSQL's type of whole numbers with eight bytes. */
const INT8 = 20;

/**
 * Opens the database of a `--database` URL and brings its tables up to date; several replicas may do so at once.
 * Whatever goes wrong with the database later is `unavailable`. Throws StartError. Source: contract section 7.
 */
export async function openDatabase(url: string): Promise<Database> {
  const dialect: Dialect = url.startsWith('sqlite:') ? 'sqlite' : 'postgres';
  const opened = dialect === 'sqlite' ? openSqlite(url.slice('sqlite:'.length)) : openPostgres(url);
  const db = new Kysely<Tables>({ dialect: opened });
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
    return answeringDialect(new SqliteDialect({ database: preparingOnce(database) }));
  } catch (error) {
    throw new StartError(`--database ${path} cannot be opened: ${(error as Error).message}`, 1, error);
  }
}

function openPostgres(url: string): KyselyDialect {
  const pool = new pg.Pool({
    ...connectionOptions(url),
    max: POSTGRES_CONNECTIONS,
    idle_in_transaction_session_timeout: POSTGRES_IDLE_TRANSACTION_MS,
    types: {
      // Times and counts: all of them are exact as numbers.
      getTypeParser: ((oid: number, format?: 'text') =>
        oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
    },
  });
  // An idle connection that breaks is replaced when it is next needed.
  pool.on('error', () => {});
  const probe = new pg.Pool({ ...connectionOptions(url), max: 1 });
  probe.on('error', () => {});
  const watch = new DatabaseWatch(systemClock, async () => {
    await probe.query('SELECT 1');
  });
  return answeringDialect(new PostgresDialect({ pool }), {
    watch: (work, always) => watch.run(work, always),
    async close() {
      watch.close();
      await probe.end();
    },
  });
}

function connectionOptions(url: string): pg.PoolConfig {
  return {
    connectionString: url,
    connectionTimeoutMillis: POSTGRES_WAIT_MS,
    query_timeout: POSTGRES_WAIT_MS,
    keepAlive: true,
  };
}
