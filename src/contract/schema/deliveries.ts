import { Type } from 'typebox';
import { ERROR_DETAIL_MAX_CHARACTERS, LIST_LIMIT, LIST_LIMIT_MAX } from '../defaults.ts';
import { ATTEMPT_ERRORS, DELIVERY_STATES, FINAL_STATES, UNDELIVERED_STATES } from '../deliveries.ts';
import { EVENT_TYPES } from '../events.ts';
import { closedObject, namedObject, OptionalTime, orNull, Time } from './field.ts';
import { pageLimit } from './query.ts';

/** Schemas of the delivery routes of both programs. Contract section 4, "Deliveries", and section 7, "Sandboxes". */

const DeliveryState = Type.Enum(DELIVERY_STATES, { title: 'DeliveryState' });
const Kind = Type.Enum(EVENT_TYPES, { title: 'EventType' });

const query = {
  state: Type.Optional(DeliveryState),
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

const OptionalStatus = orNull(Type.Integer());
const OptionalError = orNull(Type.Enum(ATTEMPT_ERRORS, { title: 'AttemptError' }));

const OptionalDetail = orNull(
  Type.String({ maxLength: ERROR_DETAIL_MAX_CHARACTERS, description: 'why the attempt failed, in one line' }),
);

const View = namedObject('Delivery', {
  event_id: Type.String(),
  event_type: Kind,
  sequence: orNull(Type.Integer()),
  state: DeliveryState,
  created_at: Time,
  finished_at: OptionalTime,
  next_attempt_at: OptionalTime,
  attempt_count: Type.Integer(),
  last_status: OptionalStatus,
  last_error: OptionalError,
  last_error_detail: OptionalDetail,
});

const Attempt = namedObject('DeliveryAttempt', {
  attempt: Type.Integer(),
  started_at: Time,
  duration_ms: Type.Integer(),
  status: OptionalStatus,
  error: OptionalError,
  error_detail: OptionalDetail,
  next_attempt_at: OptionalTime,
  response_body: orNull(Type.String()),
});

const Detail = {
  ...View.properties,
  body: Type.String(),
  headers: Type.Record(Type.String(), Type.String()),
  attempts: Type.Array(Attempt),
};

const of_sandbox = { sandbox_id: Type.String() };
const pageOf = <Entry extends Type.TSchema>(entry: Entry, title: string) =>
  namedObject(title, { deliveries: Type.Array(entry), next_cursor: orNull(Type.String()) });

/** One delivery with its body and attempts. */
export const DeliveryData = namedObject('DeliveryDetail', Detail);

/** A page of deliveries. */
export const DeliveryPageData = pageOf(View, 'DeliveryPage');

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
export const EventParams = Type.Object({ event_id: Type.String() });
