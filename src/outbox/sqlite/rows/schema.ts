import Sqlite, { type Database } from 'better-sqlite3';
import { ERROR_DETAIL_MAX_CHARACTERS, RESPONSE_KEEP_BYTES } from '../../../contract/defaults.ts';
import { StartError } from '../../../contract/errors.ts';

/** The format of an outbox, which is the `user_version` of its database. No other one is read. */
const FORMAT = 4;

/**
 * The tables and indexes of an outbox. Every database holds this text and is compared with it, so a change of its layout
 * is one of the format.
 *
 * A record is written once and never changed; what becomes of it is its row of `deliveries`, small, because it is
 * written again with each attempt. `checksum` is over headers and body: what the disk changed is not sent; `mac`
 * authenticates the record (see `recordMac`), null where the daemon has no record key. `due_ms` is set exactly while a
 * record is pending: 0 until its first attempt, then when the next one is due.
 *
 * Idempotency keys are unique within a sandbox. Numbers are kept per sandbox: of the present one in `outbox`, which has
 * one row, of each other one in `sandboxes`; its records are `foreign` for as long as it is away. `first_id`: from this
 * id on a record's id minus its sequence is always the same. The clock is kept with the machine's boot, whose own clock
 * shows how long no daemon ran.
 */
const SCHEMA = `
  CREATE TABLE records (
    id INTEGER PRIMARY KEY,
    event_id TEXT NOT NULL,
    event_type TEXT NOT NULL,
    sandbox_id TEXT NOT NULL,
    sequence INTEGER,
    headers TEXT NOT NULL,
    body TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    idempotency_key TEXT,
    created_at_ms INTEGER NOT NULL
  , mac BLOB);
  CREATE UNIQUE INDEX records_event_id ON records (event_id);
  CREATE UNIQUE INDEX records_idempotency_key ON records (sandbox_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
  CREATE TABLE sandboxes (
    number INTEGER PRIMARY KEY,
    sandbox_id TEXT NOT NULL,
    next_sequence INTEGER NOT NULL,
    is_ready INTEGER NOT NULL,
    left_ms INTEGER NOT NULL,
    pending INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    expired INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    pending_bytes INTEGER NOT NULL,
    delivered_bytes INTEGER NOT NULL
  );
  CREATE UNIQUE INDEX sandboxes_sandbox_id ON sandboxes (sandbox_id);
  CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY,
    sandbox INTEGER NOT NULL,
    state TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    deadline_ms INTEGER NOT NULL,
    due_ms INTEGER,
    probe_ms INTEGER,
    finished_ms INTEGER,
    finished_at_ms INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0
  );
  CREATE INDEX deliveries_due ON deliveries (sandbox, due_ms) WHERE due_ms > 0;
  CREATE INDEX deliveries_deadline ON deliveries (sandbox, deadline_ms) WHERE due_ms > 0;
  CREATE INDEX deliveries_probe ON deliveries (sandbox, probe_ms) WHERE due_ms > 0;
  CREATE INDEX deliveries_finished ON deliveries (sandbox, state, finished_ms) WHERE due_ms IS NULL;
  CREATE TABLE attempts (
    record_id INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    started_at_ms INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    status INTEGER,
    error TEXT,
    next_attempt_at_ms INTEGER,
    response_body TEXT, error_detail TEXT,
    PRIMARY KEY (record_id, attempt)
  ) WITHOUT ROWID;
  CREATE TABLE tree (id INTEGER PRIMARY KEY, entry TEXT NOT NULL);
  CREATE TABLE outbox (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    number INTEGER NOT NULL,
    sandbox_id TEXT,
    next_sequence INTEGER NOT NULL,
    first_id INTEGER NOT NULL,
    next_id INTEGER NOT NULL,
    is_ready INTEGER NOT NULL,
    clock_ms INTEGER NOT NULL,
    clock_wall_ms INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    boot_ms INTEGER NOT NULL,
    pending INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    expired INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    pending_bytes INTEGER NOT NULL,
    delivered_bytes INTEGER NOT NULL,
    "foreign" INTEGER NOT NULL
  );
`;

/** The row of `outbox` in an empty one. */
const NO_RECORDS = "INSERT INTO outbox VALUES (1, 1, NULL, 1, 1, 1, 0, 0, 0, '', 0, 0, 0, 0, 0, 0, 0, 0, 0)";

/** The columns of `attempts` for a query, each cut to what a daemon writes: the sandbox may have written more. */
export const ATTEMPT_COLUMNS = `attempt, started_at_ms, duration_ms, status, error,
  substr(error_detail, 1, ${ERROR_DETAIL_MAX_CHARACTERS}) AS error_detail, next_attempt_at_ms,
  substr(response_body, 1, ${RESPONSE_KEEP_BYTES}) AS response_body`;

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
