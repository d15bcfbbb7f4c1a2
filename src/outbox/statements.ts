import type { Database, Statement } from 'better-sqlite3';

const DUE = `SELECT id, event_id, event_type, headers, body, checksum, attempts, failures, deadline_ms, probe_ms,
  created_at_ms, due_ms FROM deliveries CROSS JOIN records USING (id)`;

/** What the store asks of the database, prepared. */
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
      sql(`UPDATE outbox SET sandbox_id = @sandbox_id, next_sequence = @next_sequence, next_id = @next_id,
      is_ready = @is_ready, clock_ms = @clock_ms, clock_wall_ms = @clock_wall_ms, pending = @pending,
      delivered = @delivered, failed = @failed, expired = @expired, "foreign" = @foreign, bytes = @bytes`),
    setAside:
      sql(`UPDATE deliveries SET state = 'foreign', due_ms = NULL, probe_ms = NULL, finished_ms = @now_ms,
      finished_at_ms = coalesce(finished_at_ms, @wall_ms) WHERE state != 'foreign'`),
    forgetKeys: sql('UPDATE records SET idempotency_key = NULL WHERE idempotency_key IS NOT NULL'),
    insert: sql('INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)'),
    insertDelivery: sql(
      "INSERT INTO deliveries (id, state, size_bytes, deadline_ms, due_ms) VALUES (?, 'pending', ?, ?, 0)",
    ),
    takeOver: sql(`INSERT OR IGNORE INTO records VALUES (@id, @event_id, @event_type, @sandbox_id, @sequence,
      @headers, @body, @checksum, @idempotency_key, @created_at_ms)`),
    takeOverDelivery: sql(`INSERT INTO deliveries VALUES (@id, @state, @size_bytes, @deadline_ms, @due_ms,
      @probe_ms, @finished_ms, @finished_at_ms, @attempts, @failures)`),
    byIdempotencyKey: sql('SELECT event_id, sequence, body FROM records WHERE idempotency_key = ?'),
    pendingSize: sql("SELECT size_bytes FROM deliveries WHERE id = ? AND state = 'pending'").pluck(),
    settle:
      sql(`UPDATE deliveries SET state = ?, attempts = ?, failures = failures + 1, due_ms = ?, probe_ms = ?,
      finished_ms = ?, finished_at_ms = ? WHERE id = ?`),
    fail: sql(`UPDATE deliveries SET state = 'failed', due_ms = NULL, probe_ms = NULL, finished_ms = @finished_ms,
      finished_at_ms = @finished_at_ms WHERE id = @id AND state = 'pending' RETURNING size_bytes`),
    insertAttempt: sql('INSERT OR REPLACE INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?)'),
    untried: sql(`${DUE} WHERE due_ms = 0 AND id > ? ORDER BY id LIMIT ?`),
    due: sql(`${DUE} WHERE due_ms > 0 ORDER BY due_ms, id LIMIT ?`),
    overdue: sql(`${DUE} WHERE due_ms > 0 ORDER BY deadline_ms LIMIT ?`),
    probe: sql(`${DUE} WHERE due_ms > 0 ORDER BY probe_ms LIMIT ?`),
    stateOf: sql('SELECT id, state, size_bytes FROM deliveries JOIN records USING (id) WHERE event_id = ?'),
    replay: sql(`UPDATE deliveries SET state = 'pending', failures = 0, due_ms = @now_ms, probe_ms = @now_ms,
      deadline_ms = @deadline_ms, finished_ms = NULL, finished_at_ms = NULL WHERE id = @id`),
    idsIn: sql(`SELECT event_id FROM deliveries JOIN records USING (id) WHERE due_ms IS NULL AND state = ?
      ORDER BY finished_ms LIMIT ?`),
    oldest: sql(`SELECT id, finished_ms, size_bytes FROM deliveries WHERE due_ms IS NULL AND state = ?
      ORDER BY finished_ms LIMIT ?`),
    remove: sql('DELETE FROM records WHERE id IN (SELECT value FROM json_each(?))'),
    removeDeliveries: sql('DELETE FROM deliveries WHERE id IN (SELECT value FROM json_each(?))'),
    removeAttempts: sql('DELETE FROM attempts WHERE record_id IN (SELECT value FROM json_each(?))'),
    tree: sql('SELECT id, entry FROM tree WHERE id > ? ORDER BY id LIMIT ?'),
    putTree: sql('INSERT OR REPLACE INTO tree (id, entry) VALUES (?, ?)'),
    dropTree: sql('DELETE FROM tree WHERE id = ?'),
    clearTree: sql('DELETE FROM tree'),
  };
}
