import { Type } from 'typebox';
import { ERROR_DETAIL_MAX_CHARACTERS, LIST_LIMIT, LIST_LIMIT_MAX } from '../defaults.ts';
import { ATTEMPT_ERRORS, DELIVERY_STATES, FINAL_STATES } from '../deliveries.ts';
import { EVENT_TYPES } from '../events.ts';
import { closedObject, OptionalTime, orNull, Time } from './field.ts';
import { pageLimit } from './query.ts';

/** Schemas of the delivery routes of both programs. Contract section 4, "Deliveries", and section 7, "Sandboxes". */

/** The query of a list of deliveries. */
export const DeliveryQuery = closedObject({
  state: Type.Optional(Type.Enum(DELIVERY_STATES)),
  event_type: Type.Optional(Type.Enum(EVENT_TYPES)),
  limit: pageLimit(LIST_LIMIT, LIST_LIMIT_MAX),
  cursor: Type.Optional(Type.Integer({ minimum: 1, description: 'the next_cursor of the previous page' })),
});

/** The query of a replay of all records in a state. */
export const ReplayQuery = closedObject({ state: Type.Enum(FINAL_STATES) });

const OptionalStatus = orNull(Type.Integer());
const OptionalError = orNull(Type.Enum(ATTEMPT_ERRORS));

const OptionalDetail = orNull(
  Type.String({ maxLength: ERROR_DETAIL_MAX_CHARACTERS, description: 'why the attempt failed, in one line' }),
);

const View = closedObject({
  event_id: Type.String(),
  event_type: Type.Enum(EVENT_TYPES),
  sequence: orNull(Type.Integer()),
  state: Type.Enum(DELIVERY_STATES),
  created_at: Time,
  finished_at: OptionalTime,
  next_attempt_at: OptionalTime,
  attempt_count: Type.Integer(),
  last_status: OptionalStatus,
  last_error: OptionalError,
  last_error_detail: OptionalDetail,
});

const Attempt = closedObject({
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
const pageOf = <Entry extends Type.TSchema>(entry: Entry) =>
  closedObject({ deliveries: Type.Array(entry), next_cursor: orNull(Type.String()) });

/** One delivery with its body and attempts. */
export const DeliveryData = closedObject(Detail);

/** A page of deliveries. */
export const DeliveryPageData = pageOf(View);

/** One delivery as the manager shows it. */
export const TeamDeliveryData = closedObject({ ...Detail, ...of_sandbox });

/** A page of deliveries as the manager shows it. */
export const TeamDeliveryPageData = pageOf(closedObject({ ...View.properties, ...of_sandbox }));

/** How many records are replayed. */
export const ReplayedData = closedObject({ replayed: Type.Integer() });

/** The path of one delivery. */
export const EventParams = Type.Object({ event_id: Type.String() });
