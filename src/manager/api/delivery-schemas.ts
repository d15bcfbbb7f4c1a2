import { type TSchema, Type } from 'typebox';
import { ATTEMPT_ERRORS, DELIVERY_STATES, FINAL_STATES } from '../../contract/deliveries.ts';
import { EVENT_TYPES } from '../../contract/events.ts';
import { OptionalTime, Time } from './schemas.ts';

/** Schemas of the delivery routes for `/openapi.json`. Source: contract section 7. */

const closed = { additionalProperties: false };
const orNull = (schema: TSchema) => Type.Union([schema, Type.Null()]);

const AttemptErrorData = orNull(Type.Enum([...ATTEMPT_ERRORS]));

const view = {
  event_id: Type.String(),
  event_type: Type.Enum([...EVENT_TYPES]),
  sandbox_id: Type.String(),
  sequence: orNull(Type.Integer()),
  state: Type.Enum([...DELIVERY_STATES]),
  created_at: Time,
  finished_at: OptionalTime,
  next_attempt_at: OptionalTime,
  attempt_count: Type.Integer(),
  last_status: orNull(Type.Integer()),
  last_error: AttemptErrorData,
};

const AttemptData = Type.Object(
  {
    attempt: Type.Integer(),
    started_at: Time,
    duration_ms: Type.Number(),
    status: orNull(Type.Integer()),
    error: AttemptErrorData,
    next_attempt_at: OptionalTime,
    response_body: orNull(Type.String()),
  },
  closed,
);

/** One delivery with its body and attempts. */
export const DeliveryData = Type.Object(
  {
    ...view,
    body: Type.String(),
    headers: Type.Record(Type.String(), Type.String()),
    attempts: Type.Array(AttemptData),
  },
  closed,
);

/** A page of deliveries. */
export const DeliveryPageData = Type.Object(
  { deliveries: Type.Array(Type.Object(view, closed)), next_cursor: orNull(Type.String()) },
  closed,
);

/** The query of a list of deliveries. */
export const DeliveryQuery = Type.Object(
  {
    state: Type.Optional(Type.Enum([...DELIVERY_STATES])),
    event_type: Type.Optional(Type.Enum([...EVENT_TYPES])),
    limit: Type.Optional(Type.Integer({ minimum: 1 })),
    cursor: Type.Optional(Type.String()),
  },
  closed,
);

/** The query of a replay of all records in a state. */
export const ReplayQuery = Type.Object({ state: Type.Enum([...FINAL_STATES]) }, closed);

/** How many records are replayed. */
export const ReplayedData = Type.Object({ replayed: Type.Integer() }, closed);
