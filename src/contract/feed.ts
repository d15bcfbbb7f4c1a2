import { type Static, Type } from 'typebox';
import { LIST_LIMIT, LIST_LIMIT_MAX } from './defaults.ts';
import { FEED_EVENT_TYPES } from './events.ts';
import { closedObject, integerFrom, namedObject, orNull, pageLimit, Text, Time } from './field.ts';

/** The team's lifecycle events as one feed. Contract section 7, "The feed of events". */

const Kind = Type.Enum(FEED_EVENT_TYPES, { title: 'LifecycleEventType' });

/** An event of the feed. It never changes. */
const Event = namedObject('LifecycleEvent', {
  event_id: Text,
  event_type: Kind,
  sandbox_id: Text,
  // Null for `sandbox.deleted`.
  sequence: orNull(integerFrom(1)),
  timestamp: Time,
  body: Type.String({ description: "the exact body of the webhook's request" }),
});
export type FeedEvent = Static<typeof Event>;

/** A page of events in commit order. `next_cursor` is where the next page begins, also after the last event. */
export const FeedPageData = namedObject('EventPage', {
  events: Type.Array(Event),
  next_cursor: Type.String({ minLength: 1 }),
});
export type FeedPage = Static<typeof FeedPageData>;

/** The query of a page, and of who follows. */
export const FeedQuery = closedObject({
  cursor: Type.Optional(Type.String({ minLength: 1 })),
  limit: pageLimit(LIST_LIMIT, LIST_LIMIT_MAX),
  event_type: Type.Optional(Kind),
  sandbox_id: Type.Optional(Type.String({ minLength: 1, maxLength: 256, pattern: '^[!-~]+$' })),
});
