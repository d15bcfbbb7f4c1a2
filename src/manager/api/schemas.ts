import { Type } from 'typebox';
import { BLOCK_ALL_BY, SANDBOX_NETWORK_MODES } from '../../contract/network.ts';
import { MANAGED_STATUSES, PERSISTENCES } from '../../contract/sandboxes.ts';
import { closedObject, namedObject, OptionalTime, orNull, Time } from '../../contract/schema/field.ts';
import { integerFrom, pageLimit } from '../../contract/schema/query.ts';
import { RetryClass, SentKinds, WatchIgnore } from '../../contract/schema/webhook.ts';
import { Duration, TemplateName } from '../sandboxes/request-schemas.ts';

/** Entries of a page of sandboxes where the request asks for no number. */
const PAGE_STANDARD = 50;
/** Most entries of a page of sandboxes. */
const PAGE_MAX = 200;

/** A key of metadata, a colon, and its text. */
const METADATA_PAIR = '^[A-Za-z0-9_./-]{1,63}:[^\\u0000]{0,256}$';

/** Schemas of the sandbox routes for `/openapi.json`. Source: contract section 7. */

/** The status of a sandbox. */
export const Status = Type.Enum(MANAGED_STATUSES, { title: 'ActiveStatus' });

/** The status in a record, which is kept for a while after the deletion. */
const RecordStatus = Type.Enum([...MANAGED_STATUSES, 'deleted'], { title: 'RecordStatus' });

/** What outlives what a sandbox runs in. */
const PersistenceValue = orNull(Type.Enum(PERSISTENCES, { title: 'Persistence' }));

/** The answer to a claim. */
export const ClaimedData = namedObject('ClaimedSandbox', {
  sandbox_id: Type.String(),
  status: Status,
  pod_name: Type.String(),
  runtime_id: Type.String(),
  persistence: PersistenceValue,
  template: Type.String(),
  cluster_id: Type.String(),
});

const Whole = integerFrom(0, Number.MAX_SAFE_INTEGER);

const Traffic = namedObject('Traffic', {
  passed_bytes: Whole,
  passed_packets: Whole,
  dropped_bytes: Whole,
  dropped_packets: Whole,
  waited_ms: Whole,
});

/** One sandbox. */
export const SandboxData = namedObject('Sandbox', {
  id: Type.String(),
  template_id: Type.String(),
  team_id: Type.String(),
  status: RecordStatus,
  failure: orNull(Type.Literal('runtime_lost')),
  paused: Type.Boolean(),
  auto_resume: Type.Boolean(),
  idle_ttl: Duration,
  pod_name: orNull(Type.String()),
  runtime_id: orNull(Type.String()),
  persistence: PersistenceValue,
  runtime_generation: Type.Integer(),
  resources: namedObject('SandboxResources', {
    memory: Type.String(),
    cpu: Type.Union([Type.Number(), Type.String()]),
    disk: Type.String(),
  }),
  bandwidth: namedObject('SandboxBandwidth', {
    egress_bandwidth_bytes_per_second: Whole,
    ingress_bandwidth_bytes_per_second: Whole,
    bandwidth_burst_bytes: Whole,
  }),
  network: namedObject('SandboxNetwork', {
    mode: Type.Enum(SANDBOX_NETWORK_MODES),
    enforced_by: orNull(Type.Enum(BLOCK_ALL_BY)),
  }),
  network_usage: orNull(namedObject('NetworkUsage', { egress: Traffic, ingress: Traffic })),
  webhook: orNull(
    namedObject('SandboxWebhook', {
      url: Type.String(),
      watch_dir: orNull(Type.String()),
      watch_ignore: WatchIgnore,
      events: SentKinds,
      retry: RetryClass,
      has_secret: Type.Boolean(),
    }),
  ),
  metadata: Type.Record(Type.String(), Type.String()),
  env_names: Type.Array(Type.String()),
  expires_at: OptionalTime,
  hard_expires_at: OptionalTime,
  claimed_at: OptionalTime,
  created_at: Time,
  updated_at: Time,
});

/** A page of sandboxes. */
export const SandboxListData = namedObject('SandboxList', {
  sandboxes: Type.Array(SandboxData),
  count: Type.Integer(),
  has_more: Type.Boolean(),
});

/** The status of a sandbox with its times. */
export const StatusData = namedObject('SandboxStatus', {
  sandbox_id: Type.String(),
  template_id: Type.String(),
  team_id: Type.String(),
  pod_name: orNull(Type.String()),
  runtime_id: orNull(Type.String()),
  status: Status,
  claimed_at: OptionalTime,
  expires_at: OptionalTime,
  hard_expires_at: OptionalTime,
  created_at: Time,
});

/** What a pause, resume or fork says of the processes. */
const Kept = Type.Boolean({ description: 'whether the processes were kept' });

/** The answer to a pause. */
export const PausedData = namedObject('PausedSandbox', {
  sandbox_id: Type.String(),
  paused: Type.Boolean(),
  status: Status,
  memory: Kept,
});

/** The answer to a resume. */
export const ResumedData = namedObject('ResumedSandbox', {
  sandbox_id: Type.String(),
  resumed: Type.Boolean(),
  memory: Kept,
});

/** The answer to a fork. */
export const ForkedData = namedObject('ForkedSandbox', {
  source_sandbox_id: Type.String(),
  sandbox: SandboxData,
  memory: Kept,
});

/** The answer to a refresh. */
export const RefreshedData = namedObject('RefreshedSandbox', {
  sandbox_id: Type.String(),
  expires_at: OptionalTime,
  hard_expires_at: OptionalTime,
});

/** The answer to a deletion. */
export const DeletedSandboxData = namedObject('DeletedSandbox', { message: Type.String() });

/** The query of one sandbox. */
export const OneQuery = closedObject({
  include_deleted: Type.Boolean({ default: false, description: 'also its last record, for 24 h' }),
});

/** The path of one sandbox. */
export const SandboxParams = Type.Object({ sandbox_id: Type.String() });

/** The query of a list of sandboxes. */
export const ListQuery = closedObject({
  status: Type.Optional(Status),
  template_id: Type.Optional(TemplateName),
  paused: Type.Optional(Type.Boolean()),
  metadata: Type.Optional(
    Type.Array(Type.String({ pattern: METADATA_PAIR }), {
      maxItems: 32,
      description: 'at most 32 pairs of the form key:text',
    }),
  ),
  limit: pageLimit(PAGE_STANDARD, PAGE_MAX),
  offset: Type.Integer({ minimum: 0, default: 0 }),
});
