import type { EventType, WebhookEvent } from './event.ts';
import { EVENT_SCHEMAS } from './event-schemas.ts';
import { problemWith } from './schema-check.ts';

/** A body, as it came. */
export type RawBody = string | Uint8Array | ArrayBuffer;

/** A body that is no event of this version. `field` is at fault, `problem` says why: `payload.pid`, `is required`. */
export class EventError extends Error {
  readonly field: string;
  readonly problem: string;

  constructor(field: string, problem: string) {
    super(`${field}: ${problem}`);
    this.name = 'EventError';
    this.field = field;
    this.problem = problem;
  }
}

/**
 * The event in the body of a webhook's request, checked against the schema of its kind. Throws an `EventError` for
 * anything else; its `field` is `event_type` for a kind that a later version sends. Call it after `verify`. Contract
 * section 2, "Body".
 *
 * Numbers become JavaScript's, which changes some that publishers write, such as `1.10` or `12345678901234567890`; they
 * are in the body as they were published.
 */
export function parse(rawBody: RawBody): WebhookEvent {
  const event = jsonOf(rawBody);
  const { event_type } = (event ?? {}) as { event_type?: unknown };
  if (typeof event_type === 'string' && !Object.hasOwn(EVENT_SCHEMAS, event_type)) {
    throw new EventError('event_type', 'is unknown');
  }
  const schema = EVENT_SCHEMAS[event_type as EventType] ?? EVENT_SCHEMAS['agent.event'];
  const wrong = problemWith(event, schema);
  if (wrong) throw new EventError(wrong.field || 'body', wrong.problem);
  return event as WebhookEvent;
}

function jsonOf(rawBody: RawBody): unknown {
  try {
    const text =
      typeof rawBody === 'string' ? rawBody : new TextDecoder('utf-8', { fatal: true }).decode(rawBody);
    return JSON.parse(text);
  } catch {
    throw new EventError('body', 'must be JSON in UTF-8');
  }
}
