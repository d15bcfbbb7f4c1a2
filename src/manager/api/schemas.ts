import { type TSchema, Type } from 'typebox';
import { MANAGED_STATUSES } from '../../contract/sandboxes.ts';

/** Schemas of the sandbox routes for `/openapi.json`. Source: contract section 7. */

const closed = { additionalProperties: false };
const orNull = (schema: TSchema) => Type.Union([schema, Type.Null()]);

/** An RFC 3339 timestamp. */
export const Time = Type.String({ format: 'date-time' });
/** A timestamp or null. */
export const OptionalTime = orNull(Time);
/** The status of a sandbox. */
export const Status = Type.Enum([...MANAGED_STATUSES]);

/** The answer to a claim. */
export const ClaimedData = Type.Object(
  {
    sandbox_id: Type.String(),
    status: Status,
    pod_name: Type.String(),
    template: Type.String(),
    cluster_id: Type.String(),
  },
  closed,
);

/** One sandbox. */
export const SandboxData = Type.Object(
  {
    id: Type.String(),
    template_id: Type.String(),
    team_id: Type.String(),
    status: Status,
    paused: Type.Boolean(),
    auto_resume: Type.Boolean(),
    pod_name: orNull(Type.String()),
    runtime_generation: Type.Integer(),
    resources: Type.Object(
      { memory: Type.String(), cpu: Type.Union([Type.Number(), Type.String()]) },
      closed,
    ),
    expires_at: OptionalTime,
    hard_expires_at: OptionalTime,
    claimed_at: OptionalTime,
    created_at: Time,
    updated_at: Time,
  },
  closed,
);

/** A page of sandboxes. */
export const SandboxListData = Type.Object(
  { sandboxes: Type.Array(SandboxData), count: Type.Integer(), has_more: Type.Boolean() },
  closed,
);

/** The status of a sandbox with its times. */
export const StatusData = Type.Object(
  {
    sandbox_id: Type.String(),
    template_id: Type.String(),
    team_id: Type.String(),
    pod_name: orNull(Type.String()),
    status: Status,
    claimed_at: OptionalTime,
    expires_at: OptionalTime,
    hard_expires_at: OptionalTime,
    created_at: Time,
  },
  closed,
);

/** The answer to a pause. */
export const PausedData = Type.Object(
  { sandbox_id: Type.String(), paused: Type.Boolean(), status: Status },
  closed,
);

/** The answer to a resume. */
export const ResumedData = Type.Object({ sandbox_id: Type.String(), resumed: Type.Boolean() }, closed);

/** The answer to a fork. */
export const ForkedData = Type.Object({ source_sandbox_id: Type.String(), sandbox: SandboxData }, closed);

/** The answer to a refresh. */
export const RefreshedData = Type.Object(
  { sandbox_id: Type.String(), expires_at: OptionalTime, hard_expires_at: OptionalTime },
  closed,
);

/** The answer to a deletion. */
export const DeletedData = Type.Object({ message: Type.String() }, closed);

/** The query of a list of sandboxes. */
export const ListQuery = Type.Object(
  {
    status: Type.Optional(Status),
    template_id: Type.Optional(Type.String()),
    paused: Type.Optional(Type.Boolean()),
    limit: Type.Optional(Type.Integer({ minimum: 1, default: 50, description: 'above 200 is capped' })),
    offset: Type.Optional(Type.Integer({ minimum: 0, default: 0 })),
  },
  closed,
);
