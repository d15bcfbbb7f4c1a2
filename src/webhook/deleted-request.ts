import { DELIVERY_WINDOW_MS } from '../contract/defaults.ts';
import { type Identity, newEventIds, type SignedEvent, signedEvent } from './signed-event.ts';
import { type StoredSignature, storedSignatures } from './stored-signatures.ts';

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
