import { ERROR_DETAIL_MAX_CHARACTERS, RESPONSE_KEEP_BYTES } from '../../../contract/defaults.ts';

/**
 * The tables. Every database holds this text and is compared with it, so a change of its layout is one of the format.
 *
 * A record is written once and never changed; what becomes of it is its row of `deliveries`, small, because it is
 * written again with each attempt. `checksum` is over headers and body: what the disk changed is not sent; `mac`
 * authenticates the record (see `recordMac`), null where the daemon has no record key. `due_ms` is set exactly while a
 * record is pending: 0 until its first attempt, then when the next one is due.
 *
 * Numbers are kept per sandbox: of the present one in `outbox`, of each other one in `sandboxes`; its records are
 * `foreign` for as long as it is away. `first_id`: from this id on a record's id minus its sequence is always the same.
 * The clock is kept with the machine's boot, whose own clock shows how long no daemon ran.
 */
export const RECORDS = `
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
`;

/** The index that makes idempotency keys unique within a sandbox. */
export const IDEMPOTENCY_KEYS = `
  CREATE UNIQUE INDEX records_idempotency_key ON records (sandbox_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
`;

/** The counters of the other sandboxes. */
export const SANDBOXES = `
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
    delivered_bytes INTEGER NOT NULL
  );
  CREATE UNIQUE INDEX sandboxes_sandbox_id ON sandboxes (sandbox_id);
`;

/** The delivery of each record. */
export const DELIVERIES = `
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
`;

/** The partial indexes that find due, overdue and finished deliveries. */
export const DELIVERY_INDEXES = `
  CREATE INDEX deliveries_due ON deliveries (sandbox, due_ms) WHERE due_ms > 0;
  CREATE INDEX deliveries_deadline ON deliveries (sandbox, deadline_ms) WHERE due_ms > 0;
  CREATE INDEX deliveries_probe ON deliveries (sandbox, probe_ms) WHERE due_ms > 0;
  CREATE INDEX deliveries_finished ON deliveries (sandbox, state, finished_ms) WHERE due_ms IS NULL;
`;

/** The log of attempts. */
export const ATTEMPTS = `
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
`;

/** The columns of the log for a query, each cut to what a daemon writes: the sandbox may have written more. */
export const ATTEMPT_COLUMNS = `attempt, started_at_ms, duration_ms, status, error,
  substr(error_detail, 1, ${ERROR_DETAIL_MAX_CHARACTERS}) AS error_detail, next_attempt_at_ms,
  substr(response_body, 1, ${RESPONSE_KEEP_BYTES}) AS response_body`;

/** The watched tree. */
export const TREE = `
  CREATE TABLE tree (id INTEGER PRIMARY KEY, entry TEXT NOT NULL);
`;

/** The one row of the outbox: its sandbox, counters and clocks. */
export const OUTBOX = `
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
    delivered_bytes INTEGER NOT NULL,
    "foreign" INTEGER NOT NULL
  );
`;
