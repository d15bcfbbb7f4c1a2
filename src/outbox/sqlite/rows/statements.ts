import type { Database, Statement } from 'better-sqlite3';

const DUE = `SELECT id, event_id, event_type, sandbox_id, sequence, headers, body, checksum, mac, attempts, failures, deadline_ms, probe_ms,
  created_at_ms, due_ms FROM deliveries CROSS JOIN records USING (id)`;

/**
 * The `sandbox.*` records of a sandbox, found by their idempotency keys: those of publishers do not begin with a space.
 * The index is partial, and the condition says so in its words.
 */
const LIFECYCLE = `sandbox_id = @sandbox_id AND idempotency_key IS NOT NULL
  AND idempotency_key >= ' sandbox.' AND idempotency_key < ' sandbox/'`;

/** The store's prepared statements. */
export type Statements = ReturnType<typeof prepareStatements>;

/** Prepares the store's statements. */
export function prepareStatements(db: Database) {
  const sql = (text: string): Statement => db.prepare(text);
  return {
    begin: sql('BEGIN IMMEDIATE'),
    commit: sql('COMMIT'),
    rollback: sql('ROLLBACK'),
    savepoint: sql('SAVEPOINT one_change'),
    release: sql('RELEASE one_change'),
    rollbackTo: sql('ROLLBACK TO one_change'),
    readOutbox: sql('SELECT * FROM outbox'),
    writeOutbox:
      sql(`UPDATE outbox SET number = @number, sandbox_id = @sandbox_id, next_sequence = @next_sequence,
      first_id = @first_id, next_id = @next_id, is_ready = @is_ready, clock_ms = @clock_ms,
      clock_wall_ms = @clock_wall_ms, boot_id = @boot_id, boot_ms = @boot_ms, pending = @pending,
      delivered = @delivered, failed = @failed, expired = @expired, bytes = @bytes,
      pending_bytes = @pending_bytes, delivered_bytes = @delivered_bytes, "foreign" = @foreign`),
    leave:
      sql(`INSERT INTO sandboxes VALUES (@number, @sandbox_id, @next_sequence, @is_ready, @left_ms, @pending,
      @delivered, @failed, @expired, @bytes, @pending_bytes, @delivered_bytes)`),
    comeBack:
      sql(`DELETE FROM sandboxes WHERE sandbox_id = ? RETURNING number, next_sequence, is_ready, pending,
      delivered, failed, expired, bytes, pending_bytes, delivered_bytes`),
    numberOf: sql('SELECT number FROM sandboxes WHERE sandbox_id = ?').pluck(),
    lastNumber: sql('SELECT coalesce(max(number), 0) FROM sandboxes').pluck(),
    foreignPending: sql('SELECT coalesce(sum(pending), 0) FROM sandboxes').pluck(),
    foreignDue: sql(`SELECT number, left_ms <= @all_ms AS is_all FROM sandboxes
      WHERE (left_ms <= @delivered_ms AND delivered > 0)
        OR (left_ms <= @all_ms AND pending + delivered + failed + expired > 0) ORDER BY left_ms LIMIT 1`),
    foreignRows: sql(`SELECT id, state, size_bytes FROM deliveries
      WHERE sandbox = ? AND (? OR (state = 'delivered' AND due_ms IS NULL)) ORDER BY id LIMIT ?`),
    foreignFound:
      sql(`UPDATE sandboxes SET pending = pending + (@state = 'pending'), delivered = delivered + (@state = 'delivered'),
      failed = failed + (@state = 'failed'), expired = expired + (@state = 'expired'),
      next_sequence = max(next_sequence, @sequence + 1) WHERE number = @number`),
    foreignGone: sql(`UPDATE sandboxes SET pending = pending - @pending, delivered = delivered - @delivered,
      failed = failed - @failed, expired = expired - @expired WHERE number = @number`),
    insert: sql('INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)'),
    insertDelivery: sql(
      "INSERT INTO deliveries (id, sandbox, state, size_bytes, deadline_ms, due_ms) VALUES (?, ?, 'pending', ?, ?, 0)",
    ),
    takeOver: sql(`INSERT OR IGNORE INTO records VALUES (@id, @event_id, @event_type, @sandbox_id, @sequence,
      @headers, @body, @checksum, @idempotency_key, @created_at_ms, @mac)`),
    takeOverDelivery:
      sql(`INSERT INTO deliveries VALUES (@id, @sandbox, @state, @size_bytes, @deadline_ms, @due_ms,
      @probe_ms, @finished_ms, @finished_at_ms, @attempts, @failures)`),
    byIdempotencyKey: sql(
      'SELECT event_id, sequence, body FROM records WHERE sandbox_id = ? AND idempotency_key = ?',
    ),
    pendingSize: sql(
      "SELECT size_bytes FROM deliveries WHERE id = ? AND state = 'pending' AND attempts < ?",
    ).pluck(),
    deliverFirst:
      sql(`UPDATE deliveries SET state = 'delivered', attempts = 1, failures = failures + 1, due_ms = NULL, probe_ms = NULL,
      finished_ms = ?, finished_at_ms = ?
      WHERE id IN (SELECT value FROM json_each(?)) AND state = 'pending' AND attempts = 0 RETURNING id, size_bytes`).raw(),
    recordOutcome:
      sql(`UPDATE deliveries SET state = ?, attempts = ?, failures = failures + 1, due_ms = ?, probe_ms = ?,
      finished_ms = ?, finished_at_ms = ? WHERE id = ?`),
    fail: sql(`UPDATE deliveries SET state = 'failed', due_ms = NULL, probe_ms = NULL, finished_ms = @finished_ms,
      finished_at_ms = @finished_at_ms WHERE id = @id AND state = 'pending' RETURNING size_bytes`),
    insertAttempt: sql('INSERT OR REPLACE INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)'),
    untried: sql(`${DUE} WHERE sandbox = ? AND due_ms = 0 AND id > ? ORDER BY id LIMIT ?`),
    due: sql(`${DUE} WHERE sandbox = ? AND due_ms > 0 ORDER BY due_ms, id LIMIT ?`),
    overdue: sql(`${DUE} WHERE sandbox = ? AND due_ms > 0 ORDER BY deadline_ms LIMIT ?`),
    probe: sql(`${DUE} WHERE sandbox = ? AND due_ms > 0 ORDER BY probe_ms LIMIT ?`),
    stateOf: sql(`SELECT id, sandbox, state, size_bytes FROM deliveries JOIN records USING (id)
      WHERE event_id = ?`),
    replay:
      sql(`UPDATE deliveries SET state = 'pending', failures = @failures, due_ms = @due_ms, probe_ms = @probe_ms,
      deadline_ms = @deadline_ms, finished_ms = NULL, finished_at_ms = NULL WHERE id = @id`),
    idsIn:
      sql(`SELECT event_id FROM deliveries JOIN records USING (id) WHERE sandbox = ? AND due_ms IS NULL AND state = ?
      ORDER BY finished_ms LIMIT ?`),
    oldest:
      sql(`SELECT id, finished_ms, size_bytes FROM deliveries WHERE sandbox = ? AND due_ms IS NULL AND state = ?
      ORDER BY finished_ms LIMIT ?`),
    remove: sql('DELETE FROM records WHERE id IN (SELECT value FROM json_each(?))'),
    removeButLifecycle: sql(
      "DELETE FROM records WHERE event_type NOT GLOB 'sandbox.*' AND id IN (SELECT value FROM json_each(?))",
    ),
    lifecycleAfter:
      sql(`SELECT event_id, event_type, sandbox_id, sequence, headers, body, checksum, mac, created_at_ms
      FROM records WHERE ${LIFECYCLE} AND event_type GLOB 'sandbox.*' AND sequence > @sequence ORDER BY sequence
      LIMIT @limit`),
    trimLifecycle: sql(`DELETE FROM records WHERE id IN (SELECT id FROM records WHERE ${LIFECYCLE}
      AND event_type GLOB 'sandbox.*' AND NOT EXISTS (SELECT 1 FROM deliveries WHERE deliveries.id = records.id)
      AND sequence <= @sequence)`),
    lifecycleSequence: sql(`SELECT sequence FROM records WHERE ${LIFECYCLE} AND event_type GLOB 'sandbox.*'
      ORDER BY sequence DESC LIMIT 1 OFFSET @kept`).pluck(),
    removeDeliveries: sql('DELETE FROM deliveries WHERE id IN (SELECT value FROM json_each(?))'),
    removeAttempts: sql('DELETE FROM attempts WHERE record_id IN (SELECT value FROM json_each(?))'),
    tree: sql('SELECT id, entry FROM tree WHERE id > ? ORDER BY id LIMIT ?'),
    putTree: sql('INSERT OR REPLACE INTO tree (id, entry) VALUES (?, ?)'),
    dropTree: sql('DELETE FROM tree WHERE id = ?'),
    clearTree: sql('DELETE FROM tree'),
  };
}
