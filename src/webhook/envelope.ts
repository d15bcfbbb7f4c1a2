import { timestamp } from '../base/clock.ts';
import { VERSION } from '../base/version.ts';

/** The sandbox and the team that events belong to. Source: contract section 2, `sandbox_id`, `team_id`. */
export interface Identity {
  sandbox_id: string;
  team_id: string;
}

/** The fields of a body. `payload` is JSON text and becomes part of the body unchanged. */
export interface Envelope extends Identity {
  event_id: string;
  event_type: string;
  happened_at_ms: number;
  /** Null for `sandbox.deleted`, which has no place in the sandbox's own order. */
  sequence: number | null;
  payload: string;
}

/** The body of an event as JSON text: made once, then stored, signed and sent unchanged. Source: contract section 2, "Body". */
export function body(envelope: Envelope): string {
  const { event_id, event_type, happened_at_ms, sandbox_id, team_id, sequence, payload } = envelope;
  return (
    `{"event_id":"${event_id}","event_type":"${event_type}","timestamp":"${timestamp(happened_at_ms)}",` +
    `"sandbox_id":${JSON.stringify(sandbox_id)},"team_id":${JSON.stringify(team_id)},` +
    `${sequence === null ? '' : `"sequence":${sequence},`}"payload":${payload}}`
  );
}

/**
 * The headers that are the same on every attempt and are stored with the record. `program` is `sandboxd` or
 * `sandbox-manager`; without a signature there is no signature header. Source: contract section 2.
 */
export function staticHeaders(
  envelope: Envelope,
  program: string,
  signature: string | null,
): Record<string, string> {
  return {
    'Content-Type': 'application/json',
    'User-Agent': `${program}/${VERSION}`,
    ...(signature === null ? {} : { 'X-Service-Signature': signature }),
    'ce-specversion': '1.0',
    'ce-id': envelope.event_id,
    'ce-source': `/sandboxes/${encodeURI(envelope.sandbox_id)}`,
    'ce-type': envelope.event_type,
    'ce-time': timestamp(envelope.happened_at_ms),
    ...(envelope.sequence === null ? {} : { 'ce-sequence': String(envelope.sequence) }),
  };
}
