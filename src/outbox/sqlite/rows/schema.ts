import Sqlite, { type Database } from 'better-sqlite3';
import { StartError } from '../../../contract/errors.ts';
import { FIRST_FORMAT, FROM_FIRST_FORMAT } from './first-format.ts';
import { ATTEMPTS_OF_SECOND_FORMAT, FROM_SECOND_FORMAT } from './second-format.ts';
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

const VERSION = 3;

const schemaWith = (attempts: string) =>
  RECORDS + IDEMPOTENCY_KEYS + SANDBOXES + DELIVERIES + DELIVERY_INDEXES + attempts + TREE + OUTBOX;
const SCHEMA = schemaWith(ATTEMPTS);
/** The tables of each format, the first one's first. */
const SCHEMAS = [FIRST_FORMAT, schemaWith(ATTEMPTS_OF_SECOND_FORMAT), SCHEMA];
const NO_RECORDS = "INSERT INTO outbox VALUES (1, 1, NULL, 1, 1, 1, 0, 0, 0, '', 0, 0, 0, 0, 0, 0, 0, 0)";

const DEFINITIONS = `SELECT group_concat(type || ' ' || name || ' ' || tbl_name || ' ' || sql, ';')
  FROM (SELECT * FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name)`;

/**
 * The version of a database that has the outbox's tables and indexes, and nothing else: no view or trigger runs when
 * it is read. Null for any other.
 */
export function ownVersion(db: Database): number | null {
  const version = versionOf(db);
  const own = new Sqlite(':memory:');
  own.exec(SCHEMAS[version - 1] ?? '');
  const expected = own.prepare(DEFINITIONS).pluck().get();
  own.close();
  const is_own = version >= 1 && version <= VERSION && db.prepare(DEFINITIONS).pluck().get() === expected;
  return is_own ? version : null;
}

/** Whether a database has the tables and indexes of an outbox of any format, and nothing else. */
export function hasOwnSchema(db: Database): boolean {
  return ownVersion(db) !== null;
}

function versionOf(db: Database): number {
  return db.pragma('user_version', { simple: true }) as number;
}

/** Where a database's first page says by which format it is read and written, and what says: with a log beside it. */
const FORMAT_OFFSET = 18;
const WITH_LOG = 2;
/** Where it says which version of SQLite wrote it. */
const WRITER_OFFSET = 96;

/** The bytes of a new, empty outbox. */
export function emptyOutbox(): Buffer {
  const own = new Sqlite(':memory:');
  own.pragma('auto_vacuum = INCREMENTAL');
  own.exec(SCHEMA + NO_RECORDS);
  own.pragma(`user_version = ${VERSION}`);
  const bytes = own.serialize();
  const version = own.prepare('SELECT sqlite_version()').pluck().get() as string;
  own.close();
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  bytes.writeUInt32BE(major * 1_000_000 + minor * 1_000 + patch, WRITER_OFFSET);
  return bytes.fill(WITH_LOG, FORMAT_OFFSET, FORMAT_OFFSET + 2);
}

/** How long the log may stay after it was written back: a burst must not occupy the disk for ever. */
const WAL_LIMIT_BYTES = 8 * 1024 * 1024;

/**
 * Sets a database up for the outbox: write-ahead log, a sync at every commit, one owner, space given back, the current
 * format. Throws StartError where the platform does not support that, or for a newer format. Source: contract section 5.
 */
export function prepareDatabase(db: Database): void {
  db.pragma('locking_mode = EXCLUSIVE');
  if (versionOf(db) === 0) db.pragma('auto_vacuum = INCREMENTAL');
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
  const version = versionOf(db);
  if (version < 0 || version > VERSION) {
    throw new StartError(
      `the outbox has format ${version}; this version of sandboxd reads formats 1 to ${VERSION}`,
    );
  }
  if (version < VERSION) migrate(db, version);
}

/** In one transaction: a death in between leaves the version that was found. */
function migrate(db: Database, from: number): void {
  db.transaction(() => {
    if (from === 0) db.exec(SCHEMA + NO_RECORDS);
    if (from === 1) db.exec(FROM_FIRST_FORMAT);
    if (from === 1 || from === 2) db.exec(FROM_SECOND_FORMAT);
    db.pragma(`user_version = ${VERSION}`);
  })();
}
