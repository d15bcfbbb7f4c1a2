import { timestamp } from '../base/clock.ts';
import { newIds } from '../base/ids.ts';
import { VERSION } from '../base/version.ts';
import { sign } from './signature.ts';

/** The sandbox and the team that events belong to. Source: contract section 2, `sandbox_id`, `team_id`. */
export interface Identity {
  sandbox_id: string;
  team_id: string;
}

/** Returns `count` new event ids, each `evt_` and a UUIDv7. Source: contract section 2, `event_id`. */
export function newEventIds(count: number, wall_ms: number): string[] {
  return newIds('evt_', count, wall_ms);
}

/** The fields of a body. `payload` is JSON text and becomes part of the body unchanged. */
export interface Envelope extends Identity {
  event_id: string;
  event_type: string;
  happened_at_ms: number;
  /** Null for `sandbox.deleted`, which has no place in the sandbox's own order. */
  sequence: number | null;
  payload: string;
  /** W3C Trace Context, checked; sent as it is. */
  traceparent?: string | undefined;
}

/** What is stored of an event and sent unchanged with every attempt: the exact body and the static headers. */
export interface SignedEvent {
  headers: Record<string, string>;
  body: string;
}

/**
 * Makes an event once and for all: its body as JSON text, the signature over it, and the headers that are the same on
 * every attempt. `program` is `sandboxd` or `sandbox-manager`. An empty secret signs nothing: then there is no signature
 * header. Source: contract section 2, "Body".
 */
export function signedEvent(envelope: Envelope, program: string, secret: string): SignedEvent {
  const time = timestamp(envelope.happened_at_ms);
  const body = bodyOf(envelope, time);
  const headers: Record<string, string> = {
    'Content-Type': 'application/json',
    'User-Agent': `${program}/${VERSION}`,
    ...(secret === '' ? {} : { 'X-Service-Signature': sign(secret, body) }),
    'ce-specversion': '1.0',
    'ce-id': envelope.event_id,
    'ce-source': `/sandboxes/${encodeURI(envelope.sandbox_id)}`,
    'ce-type': envelope.event_type,
    'ce-time': time,
    ...(envelope.sequence === null ? {} : { 'ce-sequence': String(envelope.sequence) }),
  };
  if (envelope.traceparent !== undefined) headers.traceparent = envelope.traceparent;
  return { headers, body };
}

function bodyOf(envelope: Envelope, time: string): string {
  const { event_id, event_type, sandbox_id, team_id, sequence, payload } = envelope;
  return (
    `{"event_id":"${event_id}","event_type":"${event_type}","timestamp":"${time}",` +
    `"sandbox_id":${JSON.stringify(sandbox_id)},"team_id":${JSON.stringify(team_id)},` +
    `${sequence === null ? '' : `"sequence":${sequence},`}"payload":${payload}}`
  );
}
