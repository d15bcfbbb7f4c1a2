import Sqlite, { type Database } from 'better-sqlite3';
import { StartError } from '../../../contract/errors.ts';
import {
  ATTEMPTS,
  DELIVERIES,
  DELIVERY_INDEXES,
  IDEMPOTENCY_KEYS,
  OUTBOX,
  RECORDS,
  SANDBOXES,
  TREE,
} from './tables.ts';

/** The format of an outbox, which is the `user_version` of its database. No other one is read. */
const FORMAT = 3;

const SCHEMA =
  RECORDS + IDEMPOTENCY_KEYS + SANDBOXES + DELIVERIES + DELIVERY_INDEXES + ATTEMPTS + TREE + OUTBOX;
const NO_RECORDS = "INSERT INTO outbox VALUES (1, 1, NULL, 1, 1, 1, 0, 0, 0, '', 0, 0, 0, 0, 0, 0, 0, 0)";

const DEFINITIONS = `SELECT group_concat(type || ' ' || name || ' ' || tbl_name || ' ' || sql, ';')
  FROM (SELECT * FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name)`;

/**
 * Whether a database has the tables and indexes of an outbox, and nothing else: no view or trigger runs when it is read.
 */
export function hasOwnSchema(db: Database): boolean {
  if (formatOf(db) !== FORMAT) return false;
  const own = new Sqlite(':memory:');
  own.exec(SCHEMA);
  const expected = own.prepare(DEFINITIONS).pluck().get();
  own.close();
  return db.prepare(DEFINITIONS).pluck().get() === expected;
}

/** Why a database of another format, earlier or later, is not read; null where its format is the present one. */
export function otherFormat(db: Database): string | null {
  const format = formatOf(db);
  if (format === FORMAT) return null;
  return `the outbox has format ${format}; this version of sandboxd reads format ${FORMAT}`;
}

function formatOf(db: Database): number {
  return db.pragma('user_version', { simple: true }) as number;
}

/** Where a database's first page says how SQLite reads and writes it, and the value for: with a log beside it. */
const LOG_OFFSET = 18;
const WITH_LOG = 2;
/** Where it says which version of SQLite wrote it. */
const WRITER_OFFSET = 96;

/** The bytes of a new, empty outbox. */
export function emptyOutbox(): Buffer {
  const own = new Sqlite(':memory:');
  own.pragma('auto_vacuum = INCREMENTAL');
  own.exec(SCHEMA + NO_RECORDS);
  own.pragma(`user_version = ${FORMAT}`);
  const bytes = own.serialize();
  const version = own.prepare('SELECT sqlite_version()').pluck().get() as string;
  own.close();
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  bytes.writeUInt32BE(major * 1_000_000 + minor * 1_000 + patch, WRITER_OFFSET);
  return bytes.fill(WITH_LOG, LOG_OFFSET, LOG_OFFSET + 2);
}

/** How long the log may stay after it was written back: a burst must not occupy the disk for ever. */
const WAL_LIMIT_BYTES = 8 * 1024 * 1024;

/**
 * Sets a database up for the outbox: write-ahead log, a sync at every commit, one owner, space given back, the tables.
 * Throws StartError where the platform does not support that, or for another format. Source: contract section 5.
 */
export function prepareDatabase(db: Database): void {
  db.pragma('locking_mode = EXCLUSIVE');
  if (formatOf(db) === 0) db.pragma('auto_vacuum = INCREMENTAL');
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  // Written back between commits by the writer, never in the middle of one.
  db.pragma('wal_autocheckpoint = 0');
  db.pragma(`journal_size_limit = ${WAL_LIMIT_BYTES}`);
  // Rows are written once and read soon after: more would be filled, and asked for no more often.
  db.pragma('cache_size = -1000');
  if (db.pragma('journal_mode', { simple: true }) !== 'wal') {
    throw new StartError('the state directory does not allow a write-ahead log');
  }
  if (db.pragma('synchronous', { simple: true }) !== 2) {
    throw new StartError('SQLite does not sync at every commit (synchronous is not FULL)');
  }
  if (formatOf(db) === 0) fill(db);
  const reason = otherFormat(db);
  if (reason !== null) throw new StartError(reason);
}

/** Makes the tables in an empty database, in one transaction: a death in between leaves it empty. */
function fill(db: Database): void {
  db.transaction(() => {
    db.exec(SCHEMA + NO_RECORDS);
    db.pragma(`user_version = ${FORMAT}`);
  })();
}
