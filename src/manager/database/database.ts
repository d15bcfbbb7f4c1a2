import {
  Kysely,
  type Dialect as KyselyDialect,
  type Transaction as KyselyTransaction,
  Migrator,
  PostgresDialect,
} from 'kysely';
import type { PoolConfig } from 'pg';
import { systemClock } from '../../base/clock.ts';
import { StartError } from '../../contract/errors.ts';
import { Ballast } from './ballast.ts';
import { answeringPostgres } from './database-driver.ts';
import { DatabaseWatch } from './database-watch.ts';
import { migrationsFor } from './migrations.ts';
import { ConnectionPool } from './postgres-pool.ts';
import { openSqlite } from './sqlite-file.ts';
import type { Dialect, Tables } from './tables.ts';

/** What stores read with: the database itself, or a transaction in it. */
export type Queries = Kysely<Tables>;

/** Every write belongs to one. On SQLite it holds the only right to write from its begin on. */
export type Transaction = KyselyTransaction<Tables>;

export interface Database {
  readonly db: Queries;
  readonly dialect: Dialect;
  /** Room on the disk of SQLite's file for what frees more of it; null where the disk is the server's. */
  readonly ballast: Ballast | null;
  close(): Promise<void>;
}

/** Connections of one replica; what needs more waits its turn. */
const POSTGRES_CONNECTIONS = 20;
/** How long one that answers may take for a connection or a query, waiting for locks included. */
const POSTGRES_WAIT_MS = 10_000;
/** A replica that stands still in the middle of a transaction loses it, and its locks, after so long. */
const POSTGRES_IDLE_TRANSACTION_MS = 10_000;

/**
 * Opens the database of a `--database` URL and brings its tables up to date; several replicas may do so at once.
 * Whatever goes wrong with the database later is `unavailable`. Throws StartError, its cause an error of the database.
 * Source: contract section 7.
 */
export async function openDatabase(url: string): Promise<Database> {
  const dialect: Dialect = url.startsWith('sqlite:') ? 'sqlite' : 'postgres';
  const path = url.slice('sqlite:'.length);
  const opened = dialect === 'sqlite' ? openSqlite(path) : openPostgres(url);
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
  const ballast = dialect === 'sqlite' ? new Ballast(`${path}-ballast`) : null;
  return { db, dialect, ballast, close: () => db.destroy() };
}

function openPostgres(url: string): KyselyDialect {
  const pool = new ConnectionPool({
    ...connectionOptions(url),
    max: POSTGRES_CONNECTIONS,
    idle_in_transaction_session_timeout: POSTGRES_IDLE_TRANSACTION_MS,
  });
  const probes = new ConnectionPool({ ...connectionOptions(url), max: 1 });
  const watch = new DatabaseWatch(systemClock, () => probes.probe());
  return answeringPostgres(new PostgresDialect({ pool }), {
    watch: (work, always) => watch.run(work, always),
    async close() {
      watch.close();
      await probes.end();
    },
  });
}

function connectionOptions(url: string): PoolConfig {
  return {
    connectionString: url,
    connectionTimeoutMillis: POSTGRES_WAIT_MS,
    query_timeout: POSTGRES_WAIT_MS,
    keepAlive: true,
  };
}
