import Sqlite, { type Database } from 'better-sqlite3';
import { StartError } from '../contract/errors.ts';

const VERSION = 1;

/**
 * A record is written once and never changed; what becomes of it is its row of `deliveries`, small, because it is
 * written again with each attempt. `checksum` is over headers and body: what the disk changed is not sent.
 * `due_ms` is set exactly while a record is pending: 0 until its first attempt, then when the next one is due.
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
  );
  CREATE UNIQUE INDEX records_event_id ON records (event_id);
  CREATE UNIQUE INDEX records_idempotency_key ON records (idempotency_key) WHERE idempotency_key IS NOT NULL;
  CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY,
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
  CREATE INDEX deliveries_due ON deliveries (due_ms) WHERE due_ms > 0;
  CREATE INDEX deliveries_deadline ON deliveries (deadline_ms) WHERE due_ms > 0;
  CREATE INDEX deliveries_probe ON deliveries (probe_ms) WHERE due_ms > 0;
  CREATE INDEX deliveries_finished ON deliveries (state, finished_ms) WHERE due_ms IS NULL;
  CREATE TABLE attempts (
    record_id INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    started_at_ms INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    status INTEGER,
    error TEXT,
    next_attempt_at_ms INTEGER,
    response_body TEXT,
    PRIMARY KEY (record_id, attempt)
  ) WITHOUT ROWID;
  CREATE TABLE tree (id INTEGER PRIMARY KEY, entry TEXT NOT NULL);
  CREATE TABLE outbox (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    sandbox_id TEXT,
    next_sequence INTEGER NOT NULL,
    next_id INTEGER NOT NULL,
    is_ready INTEGER NOT NULL,
    clock_ms INTEGER NOT NULL,
    clock_wall_ms INTEGER NOT NULL,
    pending INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    expired INTEGER NOT NULL,
    "foreign" INTEGER NOT NULL,
    bytes INTEGER NOT NULL
  );
  INSERT INTO outbox VALUES (1, NULL, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0);
`;

const DEFINITIONS = `SELECT group_concat(type || ' ' || name || ' ' || tbl_name || ' ' || sql, ';')
  FROM (SELECT * FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name)`;

/** Whether a database has the outbox's tables and indexes, and nothing else: no view or trigger runs when it is read. */
export function hasOwnSchema(db: Database): boolean {
  const own = new Sqlite(':memory:');
  own.exec(SCHEMA);
  const expected = own.prepare(DEFINITIONS).pluck().get();
  own.close();
  return (
    db.pragma('user_version', { simple: true }) === VERSION &&
    db.prepare(DEFINITIONS).pluck().get() === expected
  );
}

/** The bytes of a new, empty outbox. */
export function emptyOutbox(): Buffer {
  const own = new Sqlite(':memory:');
  own.pragma('auto_vacuum = INCREMENTAL');
  own.exec(SCHEMA);
  own.pragma(`user_version = ${VERSION}`);
  const bytes = own.serialize();
  own.close();
  return bytes;
}

/** How long the log may stay after it was written back: a burst must not occupy the disk for ever. */
const WAL_LIMIT_BYTES = 8 * 1024 * 1024;

/**
 * Makes the database what the outbox needs: write-ahead log, a sync at every commit, one owner, space given back.
 * Throws where the platform does not grant it. Source: contract section 5.
 */
export function prepareDatabase(db: Database): void {
  db.pragma('locking_mode = EXCLUSIVE');
  const is_new = db.pragma('user_version', { simple: true }) === 0;
  if (is_new) db.pragma('auto_vacuum = INCREMENTAL');
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  // Written back between commits by the writer, never in the middle of one.
  db.pragma('wal_autocheckpoint = 0');
  db.pragma(`journal_size_limit = ${WAL_LIMIT_BYTES}`);
  db.pragma('cache_size = -4000');
  if (db.pragma('journal_mode', { simple: true }) !== 'wal') {
    throw new StartError('the state directory does not allow a write-ahead log');
  }
  if (db.pragma('synchronous', { simple: true }) !== 2) {
    throw new StartError('SQLite does not sync at every commit (synchronous is not FULL)');
  }
  if (is_new) {
    db.transaction(() => {
      db.exec(SCHEMA);
      db.pragma(`user_version = ${VERSION}`);
    })();
  }
  const version = db.pragma('user_version', { simple: true });
  if (version !== VERSION) {
    throw new StartError(
      `the outbox has format ${version}; this version of sandboxd reads format ${VERSION}`,
    );
  }
}
