import { closeSync, openSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import Sqlite from 'better-sqlite3';
import { type Dialect, SqliteDialect } from 'kysely';
import { workingClock } from '../base/clock.ts';
import { StartError } from '../contract/errors.ts';
import { answeringSqlite, type SqliteState } from './database-driver.ts';
import { told } from './database-errors.ts';
import { endpointKey } from './endpoint-key.ts';
import { preparingOnce } from './prepared-database.ts';
import { SqlitePatience } from './sqlite-patience.ts';

/** The process stands still while it waits for another at the opening, and later on. */
const OPENING_BUSY_MS = 2_000;
const BUSY_MS = 2;

/** Opens the database in a file, which is made with mode 0600. Throws StartError, its cause an error of the database. */
export function openSqlite(path: string): Dialect {
  try {
    // Its other files take the mode of this one.
    closeSync(openSync(path, 'a', 0o600));
    const database = new Sqlite(path, { timeout: OPENING_BUSY_MS });
    database.pragma('journal_mode = WAL');
    database.pragma('synchronous = FULL');
    database.function('endpoint_key', { deterministic: true }, (text) => endpointKey(String(text)));
    database.pragma(`busy_timeout = ${BUSY_MS}`);
    const dialect = new SqliteDialect({ database: preparingOnce(database) });
    const patience = new SqlitePatience(workingClock, () => database.inTransaction);
    return answeringSqlite(dialect, stateOf(database, path), patience);
  } catch (error) {
    throw new StartError(`--database ${path} cannot be opened: ${(error as Error).message}`, 1, told(error));
  }
}

function stateOf(database: Sqlite.Database, given_path: string): SqliteState {
  const path = resolve(given_path);
  const opened = fileOf(path);
  return {
    get inTransaction() {
      return database.inTransaction;
    },
    demandFile() {
      // Commits to a file without a name would be gone with this process.
      if (fileOf(path) !== opened) throw new MovedError();
    },
  };
}

/** Device and number of a file; null where there is none. */
function fileOf(path: string): string | null {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat ? `${stat.dev}:${stat.ino}` : null;
}

class MovedError extends Error {
  readonly code = 'SQLITE_READONLY_DBMOVED';

  constructor() {
    super('the file of --database was removed or replaced');
  }
}
