import { type Static, type TSchema, Type } from 'typebox';
import type { ErrorCode } from './errors.ts';
import { orNull, Whole } from './field.ts';
import { DIMENSIONS } from './words.ts';

/** The `details` of errors. Contract section 4, "Error codes", and section 7, "Errors of the manager". */

const Field = Type.Optional(Type.String({ description: 'the field, query parameter or header at fault' }));
const Path = Type.Optional(Type.String({ description: 'the path at fault' }));
const Status = Type.Optional(orNull(Type.String({ description: 'the status of the sandbox' })));
const RetryAfter = Type.Optional(Whole);

/** Further fields may be added. */
const detailsOf = <Fields extends Type.TProperties>(title: string, fields: Fields) =>
  Type.Object(fields, { title });

const atPath = detailsOf('PathDetails', { path: Path, field: Field });
const later = detailsOf('RetryDetails', { retry_after_s: RetryAfter });

/** What a `quota_exceeded` (429) says. Contract section 7, "Errors of the manager". */
const QuotaDetails = detailsOf('QuotaDetails', {
  dimension: Type.Enum(DIMENSIONS, { title: 'Dimension' }),
  limit: Whole,
  // Capacity: what is in use; rate: null.
  current: orNull(Whole),
  requested: Whole,
  // Rate: how long to wait before the next request; capacity: null.
  retry_after_ms: orNull(Whole),
});
export type QuotaRefusal = Static<typeof QuotaDetails>;

/** What an error's `details` can say, by its code; the others have none. */
export const ERROR_DETAILS: Partial<Record<ErrorCode, TSchema>> = {
  invalid_request: atPath,
  forbidden: detailsOf('ForbiddenDetails', {
    scope: Type.Optional(Type.String({ description: 'the scope that the request needs' })),
    path: Path,
    field: Field,
    port: Type.Optional(Whole),
  }),
  permission_denied: atPath,
  not_found: atPath,
  conflict: detailsOf('ConflictDetails', {
    status: Status,
    field: Field,
    path: Path,
    accepted: Type.Optional(Type.Integer({ minimum: 0, description: 'the bytes that stdin took' })),
  }),
  is_a_directory: atPath,
  not_a_directory: atPath,
  not_a_file: atPath,
  already_exists: atPath,
  directory_not_empty: atPath,
  gone: detailsOf('GoneDetails', {
    stream: Type.Optional(Type.String()),
    first_offset: Type.Optional(Whole),
  }),
  precondition_failed: detailsOf('PreconditionDetails', {
    path: Path,
    etag: Type.Optional(orNull(Type.String())),
  }),
  range_not_satisfiable: detailsOf('RangeDetails', { path: Path, size: Type.Optional(Whole) }),
  no_space: atPath,
  too_many_requests: detailsOf('TooManyRequestsDetails', { path: Path, retry_after_s: RetryAfter }),
  quota_exceeded: QuotaDetails,
  bad_gateway: detailsOf('PortDetails', { port: Type.Optional(Whole) }),
  outbox_full: later,
  outbox_unavailable: later,
  unavailable: later,
  capacity_exhausted: detailsOf('CapacityDetails', {
    resource: Type.Optional(Type.String({ description: 'what the node has too little of' })),
    requested: Type.Optional(Type.String({ description: 'as in `resources` of a claim' })),
    available: Type.Optional(Type.String({ description: 'what is left of it, written the same' })),
    team_share: Type.Optional(
      Type.Boolean({ description: "whether the team's share is used up; otherwise the node is full" }),
    ),
  }),
};
