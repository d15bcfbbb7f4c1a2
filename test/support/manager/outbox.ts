import { pino } from 'pino';
import { onTestFinished } from 'vitest';
import { type Database, openDatabase } from '../../../src/manager/database/database.ts';
import { Seal } from '../../../src/manager/database/seal.ts';
import type { DeletionNotice, WebhookTarget } from '../../../src/manager/sandboxes/ports.ts';
import type { UndeliveredRecord } from '../../../src/outbox/sqlite/undelivered/undelivered-record.ts';
import type { AttemptOutcome, DueRecord } from '../../../src/outbox/store.ts';
import type { Decision } from '../../../src/webhook/retry.ts';
import { newEventIds } from '../../../src/webhook/signed-event.ts';

export const SILENT = pino({ level: 'silent' });
export const SEAL = new Seal(Buffer.alloc(32, 7));
/** Made for these tests. */
export const SECRET = `whsec_${Buffer.from('a key made for this test').toString('base64')}`;

export async function opened(url: string): Promise<Database> {
  const database = await openDatabase(url);
  onTestFinished(() => database.close());
  return database;
}

export function webhookTargetOf(overrides: Partial<WebhookTarget> = {}): WebhookTarget {
  return {
    sandbox_id: 'sb_1',
    team_id: 'team_1',
    webhook_url: 'http://consumer.invalid/hook?key=1',
    webhook_secret: 'secret of this test',
    retry: 'transient',
    ...overrides,
  };
}

export function noticeOf(happened_at_ms: number, overrides: Partial<DeletionNotice> = {}): DeletionNotice {
  return { ...webhookTargetOf(overrides), reason: 'api', actor: 'tok_1', happened_at_ms, ...overrides };
}

/** A record as a stopped daemon leaves it, `sequence` in order. */
export function undeliveredRecord(
  sequence: number,
  overrides: Partial<UndeliveredRecord> = {},
): UndeliveredRecord {
  const created_at_ms = Date.UTC(2026, 0, 1);
  const [event_id] = newEventIds(1, created_at_ms) as [string];
  const headers = { 'Content-Type': 'application/json', 'ce-id': event_id, 'ce-sequence': String(sequence) };
  return {
    event_id,
    event_type: 'agent.event',
    sequence,
    headers,
    body: `{"event_id":"${event_id}","sequence":${sequence},"payload":{"price": 1.10}}`,
    attempts: 0,
    failures: 0,
    created_at_ms,
    due_in_ms: 0,
    probe_in_ms: 0,
    deadline_in_ms: 3_600_000,
    attempt_log: [],
    ...overrides,
  };
}

/** What an attempt at a record came to. */
export function outcomeOf(record: DueRecord, decision: Decision, status = 200): AttemptOutcome {
  return {
    id: record.id,
    attempt: record.attempts + 1,
    started_at_ms: Date.UTC(2026, 0, 1),
    duration_ms: 1.5,
    status,
    error: null,
    error_detail: null,
    response_body: 'thanks',
    decision,
  };
}
