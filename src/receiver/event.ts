import type { components } from './event-types.ts';

/** The events by their kind, from the schemas of documents. Contract section 2, "Event kinds and payloads". */
type Events = components['schemas'];

/** One of the ten kinds. */
export type EventType = keyof Events;

/** The body of a webhook's request; `event_type` says which payload it has. */
export type WebhookEvent<Type extends EventType = EventType> = Events[Type];

/** The payload of each kind. */
export type EventPayloads = { [Type in EventType]: Events[Type]['payload'] };

export type ResourceUsage = EventPayloads['sandbox.paused']['resource_usage'];
export type ProcessStarted = EventPayloads['process.started'];
export type ProcessExited = EventPayloads['process.exited'];
export type ProcessCrashed = EventPayloads['process.crashed'];
export type FileModified = EventPayloads['file.modified'];
export type FileOperation = FileModified['event_type'];
