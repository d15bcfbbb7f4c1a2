import { type StandardWebhookHeaders, standardWebhookHeaders } from './signature.ts';

/** How long one signature is used: receivers accept timestamps of the last five minutes. */
const STEP_MS = 4 * 60 * 1_000;

/** When a signature becomes valid, in whole seconds since the epoch, and its `webhook-signature` value. */
export type StoredSignature = [timestamp_s: number, signature: string];

/**
 * Makes signatures of Standard Webhooks ahead, one for every 4 minutes of a window that begins at `from_ms` (wall
 * time), so that the secret need not be kept. Null if the secret asks for none. Source: contract section 7,
 * `sandbox.deleted`.
 */
export function storedSignatures(
  secret: string,
  event_id: string,
  body: string,
  from_ms: number,
  window_ms: number,
): StoredSignature[] | null {
  const signatures: StoredSignature[] = [];
  for (let at_ms = from_ms; at_ms < from_ms + window_ms; at_ms += STEP_MS) {
    const timestamp_s = Math.floor(at_ms / 1000);
    const headers = standardWebhookHeaders(secret, event_id, timestamp_s, body);
    if (!headers) return null;
    signatures.push([timestamp_s, headers['webhook-signature']]);
  }
  return signatures;
}

/** The headers of the latest signature that is valid at `now_ms` (wall time), else of the first; null without any. */
export function storedHeaders(
  signatures: StoredSignature[],
  event_id: string,
  now_ms: number,
): StandardWebhookHeaders | null {
  const latest = signatures.findLast(([timestamp_s]) => timestamp_s * 1000 <= now_ms) ?? signatures[0];
  if (!latest) return null;
  const [timestamp_s, signature] = latest;
  return {
    'webhook-id': event_id,
    'webhook-timestamp': String(timestamp_s),
    'webhook-signature': signature,
  };
}
