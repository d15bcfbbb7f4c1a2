import { timingSafeEqual } from 'node:crypto';
import { HmacKey } from '../../../webhook/hmac.ts';

/**
 * The authenticated fields of a record: everything that decides what is sent, on whose behalf, and when it was
 * committed.
 */
export interface AuthenticatedRecord {
  event_id: string;
  event_type: string;
  sandbox_id: string;
  sequence: number;
  /** JSON text, as stored. */
  headers: string;
  body: string;
  /** Wall time of its commit. */
  created_at_ms: number;
}

/** A row as it was read from a place that others may have written: any column may be anything. */
export type UntrustedRow = { [Column in keyof AuthenticatedRecord]: unknown } & { mac: unknown };

const KEY = /^[0-9a-f]{64}$/;

/** All records of an outbox are authenticated with one key. */
let last: { key: Buffer; hmac: HmacKey } | null = null;

/** The bytes of a record key given as 64 lower-case hex digits, or null where it is none. Source: contract section 7. */
export function recordKey(text: string): Buffer | null {
  return KEY.test(text) ? Buffer.from(text, 'hex') : null;
}

/**
 * HMAC-SHA256 (32 bytes) of a record, under a key that processes of the sandbox never see. Every text is preceded by
 * its length, so that no two records have the same encoding. Source: contract section 7, "A deletion loses no event".
 */
export function recordMac(key: Buffer, record: AuthenticatedRecord): Buffer {
  if (last?.key !== key) last = { key, hmac: new HmacKey(key) };
  const { event_id, event_type, sandbox_id, sequence, headers, body, created_at_ms } = record;
  const lengths = `${event_id.length},${event_type.length},${sandbox_id.length},${headers.length},${body.length}`;
  const fields = `${sequence},${created_at_ms},${lengths};${event_id}${event_type}${sandbox_id}`;
  return Buffer.from(last.hmac.sign(fields, headers, body), 'hex');
}

/** Whether a row is as the daemon with this key committed it. Compared in constant time. */
export function isAuthentic(key: Buffer, row: UntrustedRow): boolean {
  const { mac, event_id, event_type, sandbox_id, sequence, headers, body, created_at_ms } = row;
  if (!(mac instanceof Uint8Array) || mac.length !== 32) return false;
  const is_text = [event_id, event_type, sandbox_id, headers, body].every((text) => typeof text === 'string');
  if (!is_text || !Number.isSafeInteger(sequence) || !Number.isSafeInteger(created_at_ms)) return false;
  return timingSafeEqual(recordMac(key, row as unknown as AuthenticatedRecord), mac);
}
