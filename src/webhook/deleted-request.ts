import { DELIVERY_WINDOW_MS } from '../contract/defaults.ts';
import { type StandardWebhookHeaders, standardWebhookHeaders } from './signature.ts';
import { type Identity, newEventIds, type SignedEvent, signedEvent } from './signed-event.ts';

/** How long one signature is used: receivers accept timestamps of the last five minutes. */
const STEP_MS = 4 * 60 * 1_000;

/** When a signature becomes valid, in whole seconds since the epoch, and its `webhook-signature` value. */
export type StoredSignature = [timestamp_s: number, signature: string];

/** The end of a sandbox, as its consumer receives it. Source: contract section 2, `sandbox.deleted`. */
export interface Deletion extends Identity {
  event_id: string;
  reason: string;
  actor: string | null;
  happened_at_ms: number;
}

/** Everything that is sent, made once, so that the secret need not be kept. `signatures`: see `storedSignatures`. */
export interface DeletedRequest extends SignedEvent {
  signatures: StoredSignature[] | null;
}

/** Makes the exact signed request of a `sandbox.deleted`. An empty secret signs nothing. Source: contract section 2. */
export function deletedRequest(deletion: Deletion, secret: string): DeletedRequest {
  const { reason, actor, event_id, happened_at_ms } = deletion;
  const payload = JSON.stringify({ reason, actor });
  const envelope = { ...deletion, event_type: 'sandbox.deleted', sequence: null, payload };
  const event = signedEvent(envelope, 'sandbox-manager', secret);
  const signatures = storedSignatures(secret, event_id, event.body, happened_at_ms, DELIVERY_WINDOW_MS);
  return { ...event, signatures };
}

/** The event of a deletion that nobody is to receive. */
export function deletedEvent(deletion: Omit<Deletion, 'event_id'>): { event_id: string; body: string } {
  const [event_id] = newEventIds(1, deletion.happened_at_ms) as [string];
  const { body } = deletedRequest({ ...deletion, event_id }, '');
  return { event_id, body };
}

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
