import { Buffer } from 'node:buffer';
import { crc32 } from 'node:zlib';
import type { DeliveryState, OutboxCounts } from '../contract/deliveries.ts';
import type { DueRecord } from './store.ts';

/** What a record costs beside its texts: its row, its index entries and its first attempt. */
const RECORD_OVERHEAD_BYTES = 300;

/** What is known of the outbox as a whole. */
export interface OutboxRow extends OutboxCounts {
  sandbox_id: string | null;
  next_sequence: number;
  /** Never used again, so that "after this record" stays true when the newest are removed. */
  next_id: number;
  is_ready: number;
  clock_ms: number;
  clock_wall_ms: number;
}

/** A record that is to be attempted. */
export interface RecordRow extends Omit<DueRecord, 'headers'> {
  headers: string;
  checksum: number;
  due_ms: number;
}

/** A record's row as it is on disk, as far as it matters to whoever takes it over. */
export interface StoredRecord {
  id: number;
  sandbox_id: string;
  headers: string;
  body: string;
  checksum: number;
}

/** What became of a record, as it is on disk. */
export interface StoredDelivery {
  state: DeliveryState;
  size_bytes: number;
  deadline_ms: number;
  due_ms: number | null;
  probe_ms: number | null;
  finished_ms: number | null;
  finished_at_ms: number | null;
  attempts: number;
  failures: number;
}

/** The record as the dispatcher takes it. */
export function dueRecord({ due_ms: _due_ms, checksum: _checksum, ...row }: RecordRow): DueRecord {
  return { ...row, headers: JSON.parse(row.headers), probe_ms: row.probe_ms ?? 0 };
}

/** What a record counts for against the bound. */
export function sizeOf(headers: string, body: string): number {
  return Buffer.byteLength(body) + headers.length + RECORD_OVERHEAD_BYTES;
}

/** Over the exact texts. */
export function checksumOf(headers: string, body: string): number {
  return crc32(body, crc32(headers));
}

/** Whether a record is as it was stored. */
export function isWhole({
  headers,
  body,
  checksum,
}: {
  headers: string;
  body: string;
  checksum: number;
}): boolean {
  return checksumOf(headers, body) === checksum;
}
