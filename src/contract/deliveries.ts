import { type Static, Type } from 'typebox';
import { ERROR_DETAIL_MAX_CHARACTERS, LIST_LIMIT, LIST_LIMIT_MAX } from './defaults.ts';
import { EVENT_TYPES } from './events.ts';
import { closedObject, namedObject, OptionalTime, orNull, pageLimit, Text, Time, Whole } from './field.ts';
import {
  ATTEMPT_ERRORS,
  DELIVERY_STATES,
  type DeliveryState,
  ENDPOINT_HEALTHS,
  FINAL_STATES,
  UNDELIVERED_STATES,
} from './words.ts';

/** Records and their deliveries, as both programs show them. Contract section 3; section 4, "Deliveries"; section 7, "Sandboxes". */

const StateWord = Type.Enum(DELIVERY_STATES, { title: 'DeliveryState' });
const Kind = Type.Enum(EVENT_TYPES, { title: 'EventType' });

const query = {
  state: Type.Optional(StateWord),
  event_type: Type.Optional(Kind),
  limit: pageLimit(LIST_LIMIT, LIST_LIMIT_MAX),
  cursor: Type.Optional(
    Type.String({ pattern: '^[1-9][0-9]{0,14}$', description: 'the next_cursor of the previous page' }),
  ),
};

/** The query of a list of deliveries. */
export const DeliveryQuery = closedObject(query);

/** The same of a team's, which are of many sandboxes and endpoints. */
export const TeamDeliveryQuery = closedObject({
  ...query,
  sandbox_id: Type.Optional(Type.String({ minLength: 1, maxLength: 256, pattern: '^[!-~]+$' })),
  endpoint: Type.Optional(Type.String({ minLength: 1, maxLength: 4096, description: "a webhook's URL" })),
});

/** The query of a replay of all records in a state. */
export const ReplayQuery = closedObject({ state: Type.Enum(FINAL_STATES, { title: 'FinalState' }) });

/** The query that discards all records in a state. */
export const DiscardQuery = closedObject({
  state: Type.Enum(UNDELIVERED_STATES, { title: 'UndeliveredState' }),
});

/** Null where no response head arrived. */
const OptionalStatus = orNull(Type.Integer());
/** Null where a response head arrived. */
const OptionalError = orNull(Type.Enum(ATTEMPT_ERRORS, { title: 'AttemptError' }));
/** Null for a success. */
const OptionalDetail = orNull(
  Type.String({ maxLength: ERROR_DETAIL_MAX_CHARACTERS, description: 'why the attempt failed, in one line' }),
);

const View = namedObject('Delivery', {
  event_id: Text,
  event_type: Kind,
  // Null for a record of the manager's own.
  sequence: orNull(Type.Integer()),
  state: StateWord,
  created_at: Time,
  finished_at: OptionalTime,
  next_attempt_at: OptionalTime,
  attempt_count: Type.Integer(),
  // Of its latest attempt; all three are null before the first.
  last_status: OptionalStatus,
  last_error: OptionalError,
  last_error_detail: OptionalDetail,
});
/** A record in a list of deliveries. */
export type DeliveryView = Static<typeof View>;

const Attempt = namedObject('DeliveryAttempt', {
  // From 1.
  attempt: Type.Integer(),
  started_at: Time,
  duration_ms: Type.Integer(),
  status: OptionalStatus,
  error: OptionalError,
  error_detail: OptionalDetail,
  next_attempt_at: OptionalTime,
  // At most 1 KiB.
  response_body: orNull(Text),
});
export type AttemptView = Static<typeof Attempt>;

const Detail = {
  ...View.properties,
  body: Text,
  headers: Type.Record(Text, Text),
  // Oldest first.
  attempts: Type.Array(Attempt),
};

const of_sandbox = { sandbox_id: Text };
const pageOf = <Entry extends Type.TSchema>(entry: Entry, title: string) =>
  namedObject(title, { deliveries: Type.Array(entry), next_cursor: orNull(Text) });

/** One record with its exact body, its static headers and every attempt. */
export const DeliveryData = namedObject('DeliveryDetail', Detail);
export type DeliveryDetail = Static<typeof DeliveryData>;

/** A page of records, newest first; `next_cursor` is null on the last page. */
export const DeliveryPageData = pageOf(View, 'DeliveryPage');
export interface DeliveryPage<Entry = DeliveryView> {
  deliveries: Entry[];
  next_cursor: string | null;
}

/** A record as the manager shows it: a team sees those of many sandboxes. */
export type OfSandbox<Entry> = Entry & { sandbox_id: string };

/** One delivery as the manager shows it. */
export const TeamDeliveryData = namedObject('TeamDeliveryDetail', { ...Detail, ...of_sandbox });

/** A page of deliveries as the manager shows it. */
export const TeamDeliveryPageData = pageOf(
  namedObject('TeamDelivery', { ...View.properties, ...of_sandbox }),
  'TeamDeliveryPage',
);

/** How many records are replayed. */
export const ReplayedData = namedObject('Replayed', { replayed: Type.Integer() });

/** How many records are discarded. */
export const DiscardedData = namedObject('Discarded', { discarded: Type.Integer() });

/** The path of one delivery. */
export const EventParams = Type.Object({ event_id: Text });

/** The number of records in each state, and the bytes of those that are not delivered. */
export const OutboxCountsData = namedObject('OutboxCounts', {
  ...(Object.fromEntries(DELIVERY_STATES.map((state) => [state, Whole])) as Record<
    DeliveryState,
    typeof Whole
  >),
  bytes: Whole,
});
export type OutboxCounts = Static<typeof OutboxCountsData>;

/** An endpoint as its deliveries show it. */
export const EndpointData = namedObject('EndpointHealth', {
  health: Type.Enum(ENDPOINT_HEALTHS),
  // Null unless it backs off, and while the probe is under way.
  next_probe_at: OptionalTime,
  // The status of the latest refusal, and how many there were in a row; null unless it is rejecting.
  refusals: orNull(namedObject('EndpointRefusals', { status: Type.Integer(), count: Whole })),
});
export type EndpointView = Static<typeof EndpointData>;
