import { Buffer } from 'node:buffer';
import { crc32 } from 'node:zlib';
import type { OutboxCounts } from '../../../contract/deliveries.ts';
import type { DeliveryState } from '../../../contract/words.ts';
import type { LoadedRecord } from '../../store.ts';

/** What a record costs beside its texts: its row, its index entries and its first attempt. */
const RECORD_OVERHEAD_BYTES = 300;

/** A record's state for its own sandbox. */
export type OwnState = Exclude<DeliveryState, 'foreign'>;

/** The counters of one sandbox's records. */
export interface SandboxCounters extends Omit<OutboxCounts, 'foreign'> {
  /** Marks its deliveries. */
  number: number;
  next_sequence: number;
  is_ready: number;
  /** The part of `bytes` that is pending. */
  pending_bytes: number;
  delivered_bytes: number;
}

/** The counters of the outbox as a whole, and of the sandbox that it is for. */
export interface OutboxRow extends SandboxCounters, OutboxCounts {
  sandbox_id: string | null;
  /** From this id on a record's id minus its sequence is always the same. */
  first_id: number;
  /** Never used again, so that "after this record" stays true when the newest are removed. */
  next_id: number;
  clock_ms: number;
  clock_wall_ms: number;
  boot_id: string;
  boot_ms: number;
}

/** A record that is to be attempted. */
export interface RecordRow extends Omit<LoadedRecord, 'headers' | 'body' | 'body_bytes'> {
  headers: string;
  body: string;
  sandbox_id: string;
  sequence: number;
  checksum: number;
  mac: Uint8Array | null;
  due_ms: number;
}

/** A record's row as it is on disk, as far as taking it over needs it. */
export interface StoredRecord {
  id: number;
  event_id: string;
  event_type: string;
  sandbox_id: string;
  sequence: number;
  headers: string;
  body: string;
  checksum: number;
  created_at_ms: number;
  mac: Uint8Array | null;
}

/** A record's delivery, as it is on disk. Times are in ms of the store's clock, `finished_at_ms` in wall time. */
export interface StoredDelivery {
  state: OwnState;
  size_bytes: number;
  deadline_ms: number;
  due_ms: number | null;
  probe_ms: number | null;
  finished_ms: number | null;
  finished_at_ms: number | null;
  attempts: number;
  failures: number;
}

/** A record in the dispatcher's form, as it was read. */
export interface ReadRecord extends LoadedRecord {
  body: string;
}

/** The record in the dispatcher's form; null where its headers are not an object of lines of text. */
export function dueRecord(row: RecordRow): ReadRecord | null {
  const { id, event_id, event_type, body, attempts, failures, deadline_ms, created_at_ms } = row;
  const headers = parsedHeaders(row.headers);
  if (!headers) return null;
  const probe_ms = row.probe_ms ?? 0;
  return {
    id,
    event_id,
    event_type,
    headers,
    body,
    body_bytes: body.length,
    attempts,
    failures,
    deadline_ms,
    probe_ms,
    created_at_ms,
  };
}

/** What a record counts against the bound, in bytes. */
export function recordSizeBytes(headers: string, body: string): number {
  return Buffer.byteLength(body) + headers.length + RECORD_OVERHEAD_BYTES;
}

/** CRC-32 of the exact texts. */
export function checksumOf(headers: string, body: string): number {
  return crc32(body, crc32(headers));
}

/** The headers of a stored text; null where it is not an object of lines of text. */
function parsedHeaders(text: string): Record<string, string> | null {
  let headers: unknown;
  try {
    headers = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof headers !== 'object' || headers === null) return null;
  return Object.values(headers).every((value) => typeof value === 'string' && !value.includes('\n'))
    ? (headers as Record<string, string>)
    : null;
}

/** Whether a record is as it was stored. A column of a damaged file may be of any type. */
export function isWhole(row: { headers: unknown; body: unknown; checksum: unknown }): boolean {
  const { headers, body, checksum } = row;
  if (typeof headers !== 'string' || typeof body !== 'string') return false;
  return checksumOf(headers, body) === checksum;
}
