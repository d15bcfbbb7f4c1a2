/** The team's lifecycle events as one feed. Contract section 7, "The feed of events". */

/** The kinds that are in the feed. */
export const FEED_EVENT_TYPES = [
  'sandbox.ready',
  'sandbox.paused',
  'sandbox.resumed',
  'sandbox.killed',
  'sandbox.deleted',
] as const;

/** One of `FEED_EVENT_TYPES`. */
export type FeedEventType = (typeof FEED_EVENT_TYPES)[number];

/** An event of the feed. It never changes. */
export interface FeedEvent {
  event_id: string;
  event_type: FeedEventType;
  sandbox_id: string;
  /** Null for `sandbox.deleted`. */
  sequence: number | null;
  /** When it happened, RFC 3339 UTC. */
  timestamp: string;
  /** The exact body of its webhook's request. */
  body: string;
}

/** A page of events in commit order. */
export interface FeedPage {
  events: FeedEvent[];
  /** Where the next page begins; never empty, also after the last event. */
  next_cursor: string;
}
