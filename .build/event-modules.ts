import { EVENT_TYPES } from '../src/contract/events.ts';
import { EVENT_SCHEMAS } from '../src/receiver/event-schemas.ts';

/**
 * What `sandboxd/events` has of the rows of events, as modules in the place of those of `src/`: their kinds and schemas as
 * they are, without the library that schemas are written with.
 */
export const EVENT_MODULES: Readonly<Record<string, string>> = {
  'contract/events.ts': `/** Event types and their payloads. Contract section 2, "Event kinds and payloads". */

/** Every event type. */
export const EVENT_TYPES = [${EVENT_TYPES.map((type) => `'${type}'`).join(', ')}] as const;

/** One of \`EVENT_TYPES\`. */
export type EventType = (typeof EVENT_TYPES)[number];
`,
  'receiver/event-schemas.ts': `import { type EventType } from '../contract/events.ts';
import type { EventSchema } from './schema-check.ts';

/** The schemas of the ten events, as documents show them. The build puts the values in the place of this module. */
export const EVENT_SCHEMAS = ${JSON.stringify(EVENT_SCHEMAS)} as Readonly<Record<EventType, EventSchema>>;
`,
};
