import { DELIVERIES, DELIVERY_INDEXES, IDEMPOTENCY_KEYS, OUTBOX, SANDBOXES } from './tables.ts';

/** The tables of format 1. */
export const FIRST_FORMAT = `
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

const of = (state: string) => `count(*) FILTER (WHERE state = '${state}')`;
const BYTES = `coalesce(sum(size_bytes) FILTER (WHERE state != 'delivered'), 0)`;
const DELIVERED_BYTES = `coalesce(sum(size_bytes) FILTER (WHERE state = 'delivered'), 0)`;
const COUNTS = `${of('pending')}, ${of('delivered')}, ${of('failed')}, ${of('expired')}, ${BYTES}, ${DELIVERED_BYTES}`;

/**
 * Makes format 2 of format 1, which wrote `foreign` over a record's state: what it was is known from its attempts.
 * A sandbox that came back had its sequences begun anew; from now on they go on after the highest.
 */
export const FROM_FIRST_FORMAT = `
  ALTER TABLE records ADD COLUMN mac BLOB;
  DROP INDEX records_idempotency_key;
  ${IDEMPOTENCY_KEYS}
  UPDATE deliveries SET state = CASE
      WHEN last.attempt IS NULL OR last.next_attempt_at_ms IS NOT NULL THEN 'pending'
      WHEN last.status BETWEEN 200 AND 299 THEN 'delivered'
      ELSE 'failed' END
    FROM deliveries AS own LEFT JOIN attempts AS last ON last.record_id = own.id AND last.attempt = own.attempts
    WHERE own.id = deliveries.id AND own.state = 'foreign';
  UPDATE deliveries SET due_ms = CASE attempts WHEN 0 THEN 0 ELSE 1 END,
      probe_ms = CASE attempts WHEN 0 THEN NULL ELSE 1 END, finished_ms = NULL, finished_at_ms = NULL
    WHERE state = 'pending' AND due_ms IS NULL;
  ${SANDBOXES}
  INSERT INTO sandboxes SELECT row_number() OVER (ORDER BY min(records.id)) + 1, records.sandbox_id,
      max(records.sequence) + 1, 0, clock_ms, ${COUNTS}
    FROM records JOIN deliveries USING (id), outbox
    WHERE records.sandbox_id IS NOT outbox.sandbox_id GROUP BY records.sandbox_id;
  DROP INDEX deliveries_due;
  DROP INDEX deliveries_deadline;
  DROP INDEX deliveries_probe;
  DROP INDEX deliveries_finished;
  ALTER TABLE deliveries RENAME TO deliveries_1;
  ${DELIVERIES}
  INSERT INTO deliveries SELECT id, coalesce(number, 1), state, size_bytes, deadline_ms, due_ms, probe_ms,
      finished_ms, finished_at_ms, attempts, failures
    FROM deliveries_1 JOIN records USING (id) LEFT JOIN sandboxes USING (sandbox_id);
  DROP TABLE deliveries_1;
  ${DELIVERY_INDEXES}
  ALTER TABLE outbox RENAME TO outbox_1;
  ${OUTBOX}
  INSERT INTO outbox SELECT 1, 1, sandbox_id, max(next_sequence, highest + 1),
      CASE WHEN next_sequence > highest THEN next_id - next_sequence + 1 ELSE next_id END,
      next_id, is_ready, clock_ms, clock_wall_ms, '', 0, own.*,
      (SELECT count(*) FROM deliveries WHERE sandbox != 1)
    FROM outbox_1, (SELECT ${COUNTS} FROM deliveries WHERE sandbox = 1) AS own,
      (SELECT coalesce(max(sequence), 0) AS highest FROM records JOIN deliveries USING (id) WHERE sandbox = 1);
  DROP TABLE outbox_1;
`;
