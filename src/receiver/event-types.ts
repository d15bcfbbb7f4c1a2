import type { EventPayloads, EventType } from '../contract/events.ts';

/** The bodies of events by their kind. In the package the build puts what the documents say of them in this place. */
export interface components {
  schemas: { [Kind in EventType]: BodyOf<Kind> };
}

interface Head<Kind extends EventType> {
  event_id: string;
  event_type: Kind;
  timestamp: string;
  sandbox_id: string;
  team_id: string;
}

/** The manager's own event has no place in the sandbox's order. */
type BodyOf<Kind extends EventType> = Head<Kind> &
  (Kind extends 'sandbox.deleted' ? unknown : { sequence: number }) & { payload: EventPayloads[Kind] };
