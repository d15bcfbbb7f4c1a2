import type { Buffer } from 'node:buffer';
import { verify } from '../../../webhook/signature.ts';
import { isAuthentic, recordKey } from '../rows/record-mac.ts';

/** A record's row, as far as it is handed over. Processes of the sandbox may have written it. */
export interface PendingRow {
  id: number;
  event_id: string;
  event_type: string;
  sandbox_id: string;
  sequence: number;
  headers: string;
  body: string;
  checksum: number;
  mac: unknown;
  created_at_ms: number;
  deadline_ms: number;
  due_ms: number;
  probe_ms: number | null;
  attempts: number;
  failures: number;
}

/** How records of a sandbox's daemon are distinguished from those that others wrote into its outbox. */
export interface Trust {
  sandbox_id: string;
  team_id: string;
  /** 64 hex digits; null where the daemon was started before there was one: then its webhook's signature decides. */
  record_key: string | null;
  /** Empty where nothing is signed. */
  webhook_secret: string;
}

/**
 * Whether a record is its daemon's own: authenticated by a key that the sandbox never sees, and nothing else than its
 * body says. Source: contract section 7, "A deletion loses no event".
 */
export function isBelieved(row: PendingRow, headers: Record<string, string>, trust: Trust): boolean {
  if (row.sandbox_id !== trust.sandbox_id || !saysTheSame(row, trust)) return false;
  if (trust.record_key === null) return isSigned(row, headers, trust);
  const key = keyOf(trust.record_key);
  return key !== null && isAuthentic(key, row);
}

/** The signature is over the body alone: what a receiver may take from the headers must be in it. */
function isSigned(row: PendingRow, headers: Record<string, string>, { webhook_secret }: Trust): boolean {
  return (
    verify(webhook_secret, row.body, headers['X-Service-Signature']) &&
    headers['ce-id'] === row.event_id &&
    headers['ce-type'] === row.event_type &&
    headers['ce-source'] === `/sandboxes/${encodeURI(row.sandbox_id)}` &&
    headers['ce-sequence'] === String(row.sequence)
  );
}

function saysTheSame(row: PendingRow, { team_id }: Trust): boolean {
  const body = parsed(row.body);
  return (
    body !== null &&
    body.event_id === row.event_id &&
    body.event_type === row.event_type &&
    body.sandbox_id === row.sandbox_id &&
    body.sequence === row.sequence &&
    body.team_id === team_id
  );
}

function parsed(body: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** The same bytes each time, which spares making the key anew for each record. */
let last: { text: string; key: Buffer | null } = { text: '', key: null };

function keyOf(text: string): Buffer | null {
  if (last.text !== text) last = { text, key: recordKey(text) };
  return last.key;
}
