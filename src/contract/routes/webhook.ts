import { type TSchema, Type } from 'typebox';
import { EVENT_TYPES, type EventType, eventRow } from '../events.ts';
import * as fields from '../field.ts';
import type { WebhookDoc } from './route.ts';

const PIECES = { ...fields, Type };

/** An event's type as the name of a type, such as `ProcessExited`. */
function eventName(event_type: EventType): string {
  return event_type.replaceAll(/(?:^|\.)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** The schema of the body of an event. Contract section 2. */
export function eventSchema(event_type: EventType): TSchema {
  return fields.namedObject(event_type === 'agent.event' ? 'AgentEvent' : `${eventName(event_type)}Event`, {
    event_id: fields.Text,
    event_type: Type.Literal(event_type),
    timestamp: fields.Time,
    sandbox_id: fields.Text,
    team_id: fields.Text,
    // The manager's own event has no place in the sandbox's order.
    ...(event_type === 'sandbox.deleted' ? {} : { sequence: fields.integerFrom(1) }),
    payload: eventRow(event_type).payload(PIECES),
  });
}

/** Headers of every delivery. */
const HEADERS: Readonly<Record<string, string>> = {
  'ce-specversion': '1.0',
  'ce-id': 'the `event_id`',
  'ce-source': '/sandboxes/ and the id of the sandbox',
  'ce-type': 'the `event_type`',
  'ce-time': 'the `timestamp`',
  'X-Service-Attempt': '1, 2, …; not signed',
};

/** Headers that depend on the secret or on the event. */
const OPTIONAL_HEADERS: Readonly<Record<string, string>> = {
  'ce-sequence': 'the `sequence`; absent on sandbox.deleted',
  traceparent: 'the trace (W3C Trace Context) of the publish, where it had one',
  'X-Service-Signature': 'with a secret: the HMAC-SHA256 of the body under it, 64 hex digits',
  'webhook-id': 'Standard Webhooks, with a secret that starts with whsec_: the `event_id`',
  'webhook-timestamp': 'Standard Webhooks: when the attempt was made, in seconds',
  'webhook-signature': 'Standard Webhooks: v1 and the signature of id, timestamp and body',
};

/** What the receiver's answers mean. */
const ANSWERS: Readonly<Record<string, string>> = {
  '2XX': 'delivered',
  '4XX': 'refused: sent again only after 408, 425 and 429, or by a replay',
  '5XX': 'sent again later',
};

/** The requests that the webhook gets, by their `event_type`. Contract section 2. */
export const WEBHOOK_DOCS: Readonly<Record<EventType, WebhookDoc>> = Object.fromEntries(
  EVENT_TYPES.map((type) => [type, webhookDoc(type)]),
) as Record<EventType, WebhookDoc>;

function webhookDoc(type: EventType): WebhookDoc {
  return {
    operation_id: `on${eventName(type)}`,
    tag: 'events',
    summary: eventRow(type).summary,
    headers: HEADERS,
    optional_headers: OPTIONAL_HEADERS,
    body: eventSchema(type),
    answers: ANSWERS,
  };
}
