import { EVENT_TYPES, type EventType } from '../contract/events.ts';
import { eventSchema } from '../contract/routes/webhook.ts';
import type { EventSchema } from './schema-check.ts';

/** The schemas of the ten events, as documents show them. The build puts the values in the place of this module. */
export const EVENT_SCHEMAS = Object.fromEntries(
  EVENT_TYPES.map((type) => [type, eventSchema(type)]),
) as Readonly<Record<EventType, EventSchema>>;
