import { type TSchema, Type } from 'typebox';
import { MANAGED_STATUSES } from '../../contract/sandboxes.ts';

/** What the routes of sandboxes answer, for the document at `/openapi.json`. Source: contract section 7. */

const closed = { additionalProperties: false };
const orNull = (schema: TSchema) => Type.Union([schema, Type.Null()]);

export const Time = Type.String({ format: 'date-time' });
export const OptionalTime = orNull(Time);
export const Status = Type.Enum([...MANAGED_STATUSES]);

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

export const SandboxListData = Type.Object(
  { sandboxes: Type.Array(SandboxData), count: Type.Integer(), has_more: Type.Boolean() },
  closed,
);

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

export const PausedData = Type.Object(
  { sandbox_id: Type.String(), paused: Type.Boolean(), status: Status },
  closed,
);

export const ResumedData = Type.Object({ sandbox_id: Type.String(), resumed: Type.Boolean() }, closed);

export const ForkedData = Type.Object({ source_sandbox_id: Type.String(), sandbox: SandboxData }, closed);

export const RefreshedData = Type.Object(
  { sandbox_id: Type.String(), expires_at: OptionalTime, hard_expires_at: OptionalTime },
  closed,
);

export const DeletedData = Type.Object({ message: Type.String() }, closed);

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
