import { EVENT_TYPES, type EventType } from '../events.ts';
import { eventName, eventSchema } from '../schema/events.ts';
import type { WebhookDoc } from './route-doc.ts';

const SUMMARIES: Readonly<Record<EventType, string>> = {
  'sandbox.ready': 'The sandbox listens, watches, and has started its main command',
  'sandbox.paused': 'A pause is complete',
  'sandbox.resumed': 'A resume is complete',
  'sandbox.killed': 'The sandbox has ended, and its processes with it',
  'sandbox.deleted': 'The deletion of the sandbox is committed',
  'process.started': 'A process was started, or started again',
  'process.exited': 'A process has ended by itself, or as it was asked to',
  'process.crashed': 'A process was ended by a signal that nobody asked for, or for lack of memory',
  'file.modified': 'Something changed in the watched directory',
  'agent.event': 'The payload that was published',
};

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
    summary: SUMMARIES[type],
    headers: HEADERS,
    optional_headers: OPTIONAL_HEADERS,
    body: eventSchema(type),
    answers: ANSWERS,
  };
}
