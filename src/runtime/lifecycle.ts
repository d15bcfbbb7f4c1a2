import { LIFECYCLE_PAGE_RECORDS, LIFECYCLE_PATH } from '../contract/lifecycle.ts';
import { type FoundLifecycle, lifecycleEvent } from '../outbox/sqlite/undelivered/lifecycle-event.ts';
import { DAEMON_ANSWER_TIMEOUT_MS, type DaemonAddress, requestDaemon } from './control-client.ts';
import type { SandboxFiles } from './local/sandbox-files.ts';
import type { LifecyclePage, RecordTrust } from './runtime.ts';

const NONE: LifecyclePage = { events: [], more: false, refused: 0 };
const NOT_FOUND = 404;

/** As `lifecycleOf`, of a local sandbox; a daemon of a version that does not know the question has no events. */
export async function readLifecycle(
  files: SandboxFiles,
  trust: RecordTrust,
  after: number,
): Promise<LifecyclePage | null> {
  const { sandbox_id, socket_address } = files;
  const record = files.readRecord();
  if (record === null) return null;
  if (!record.has_record_key) return NONE;
  return lifecycleOf(socket_address, { ...trust, sandbox_id }, after);
}

/**
 * Asks a sandbox's daemon for the events of its own life after a sequence. Nothing in the answer is trusted but what the
 * record key authenticates. Null without an answer; a daemon that does not know the question has none.
 */
export async function lifecycleOf(
  address: DaemonAddress,
  trust: RecordTrust & { sandbox_id: string },
  after: number,
): Promise<LifecyclePage | null> {
  const path = `${LIFECYCLE_PATH}?after=${after}&limit=${LIFECYCLE_PAGE_RECORDS}`;
  const request = { method: 'GET', path, scope: 'manage', within_ms: DAEMON_ANSWER_TIMEOUT_MS } as const;
  const answer = await requestDaemon(address, request);
  if (answer.outcome !== 'answered') return null;
  if (answer.status === NOT_FOUND) return NONE;
  const records = recordsIn(answer.data);
  if (answer.status !== 200 || records === null) return null;
  const found = records
    .slice(0, LIFECYCLE_PAGE_RECORDS)
    .map((record) => lifecycleEvent(stored(record), trust));
  const events = found.filter((event) => event !== null).filter(({ sequence }) => sequence > after);
  events.sort((a, b) => a.sequence - b.sequence);
  return { events, more: records.length >= LIFECYCLE_PAGE_RECORDS, refused: found.length - events.length };
}

function recordsIn(data: unknown): unknown[] | null {
  const { records } = (data ?? {}) as { records?: unknown };
  return Array.isArray(records) ? records : null;
}

/** The record as it was stored: an answer has its bytes in hex. */
function stored(record: unknown): FoundLifecycle {
  const { mac, ...row } = (record ?? {}) as FoundLifecycle;
  return { ...row, mac: typeof mac === 'string' ? Buffer.from(mac, 'hex') : null };
}
