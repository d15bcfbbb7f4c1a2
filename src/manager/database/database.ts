import {
  Kysely,
  type Dialect as KyselyDialect,
  type Transaction as KyselyTransaction,
  Migrator,
  PostgresDialect,
  type RawBuilder,
} from 'kysely';
import type { PoolConfig } from 'pg';
import { systemClock } from '../../base/clock.ts';
import { StartError } from '../../contract/errors.ts';
import { Ballast } from './ballast.ts';
import { guardedPostgres } from './database-driver.ts';
import { DatabaseWatch } from './database-watch.ts';
import { migrationsFor } from './migrations/migrations.ts';
import { PostgresConnectionPool } from './postgres-connection-pool.ts';
import { POSTGRES_TIME } from './postgres-time-store.ts';
import { openSqlite } from './sqlite-file.ts';
import type { Dialect, Tables } from './tables.ts';
import { WriteState } from './write-state.ts';

/** What stores read through: the database itself, or a transaction in it. */
export type Queries = Kysely<Tables>;

/** A transaction; every write belongs to one. On SQLite it holds the write lock from its begin. */
export type Transaction = KyselyTransaction<Tables>;

/** An open database whose tables are up to date. Queries reject with `unavailable` while it cannot be used. */
export interface Database {
  readonly db: Queries;
  readonly dialect: Dialect;
  /** SQL for its server's time in ms, the same throughout a statement; null for SQLite, which has no clock. */
  readonly time: RawBuilder<number> | null;
  /** Reserved disk space beside the SQLite file; null for PostgreSQL. */
  readonly ballast: Ballast | null;
  /** Whether it takes writes. */
  readonly writes: WriteState;
  /** Calls `run` at each new connection to a server, which may be another one than before. */
  onConnect(run: () => void): void;
  /** Closes every connection. */
  close(): Promise<void>;
}

/** Connections of one replica; further queries wait for a free one. */
const POSTGRES_CONNECTIONS = 20;
/** Limit for a connection attempt or a query, including the wait for locks, on a server that answers. */
const POSTGRES_WAIT_MS = 10_000;
/** A replica that is suspended in the middle of a transaction loses it, and its locks, after this time. */
const POSTGRES_IDLE_TRANSACTION_MS = 10_000;

/**
 * Opens the database of a `--database` URL and brings its tables up to date; several replicas may do so at once.
 * Later failures of the database are reported as `unavailable`. Throws StartError, whose cause is the database's
 * error. Source: contract section 7.
 */
export async function openDatabase(url: string): Promise<Database> {
  const dialect: Dialect = url.startsWith('sqlite:') ? 'sqlite' : 'postgres';
  const path = url.slice('sqlite:'.length);
  const listeners: (() => void)[] = [];
  const connected = () => {
    for (const listener of listeners) listener();
  };
  const opened = dialect === 'sqlite' ? openSqlite(path) : openPostgres(url, connected);
  const writes = new WriteState(systemClock);
  const db = new Kysely<Tables>({
    dialect: opened,
    log: (event) => {
      if (event.level === 'error') writes.note(event.error);
    },
  });
  const migrations = migrationsFor(dialect);
  const provider = { getMigrations: async () => migrations };
  const { error } = await new Migrator({ db, provider }).migrateToLatest();
  if (error) {
    await db.destroy();
    throw new StartError(
      `--database cannot be used: ${reasonOf(error as Error, Object.keys(migrations))}`,
      1,
      error,
    );
  }
  const ballast = dialect === 'sqlite' ? new Ballast(`${path}-ballast`) : null;
  const time = dialect === 'postgres' ? POSTGRES_TIME : null;
  const onConnect = (run: () => void) => void listeners.push(run);
  return { db, dialect, time, ballast, writes, onConnect, close: () => db.destroy() };
}

/** Why a database is refused: one that another build migrated may hold other tables than these. */
function reasonOf({ message, cause }: Error, names: string[]): string {
  const unknown = /previously executed migration (\S+) is missing/.exec(message)?.[1];
  if (unknown === undefined) return (cause as Error | undefined)?.message ?? message;
  const [oldest = ''] = names;
  return unknown < oldest
    ? `an earlier build of sandbox-manager, which was never released, has made it (${unknown}): start that build, or use a new database`
    : `a newer sandbox-manager has migrated it (${unknown}): start that version, or restore a backup from before`;
}

function openPostgres(url: string, onConnect: () => void): KyselyDialect {
  const options = {
    ...connectionOptions(url),
    max: POSTGRES_CONNECTIONS,
    idle_in_transaction_session_timeout: POSTGRES_IDLE_TRANSACTION_MS,
  };
  const pool = new PostgresConnectionPool(options, onConnect);
  const probes = new PostgresConnectionPool({ ...connectionOptions(url), max: 1 });
  const watch = new DatabaseWatch(systemClock, () => probes.probe());
  return guardedPostgres(new PostgresDialect({ pool }), {
    run: (work, always) => watch.run(work, always),
    async close() {
      watch.close();
      await probes.end();
    },
  });
}

/** How the manager connects to PostgreSQL. */
export function connectionOptions(url: string): PoolConfig {
  return {
    connectionString: url,
    connectionTimeoutMillis: POSTGRES_WAIT_MS,
    query_timeout: POSTGRES_WAIT_MS,
    keepAlive: true,
  };
}
