import { type Static, Type } from 'typebox';
import {
  closedObject,
  defaulted,
  environmentOf,
  integerFrom,
  namedObject,
  OptionalText,
  OptionalTime,
  orNull,
  PlainText,
  pageLimit,
  Text,
  Time,
  SafeWhole as Whole,
} from './field.ts';
import { TEMPLATE } from './ids.ts';
import {
  DURATION_MAX_S,
  METADATA_KEY_PATTERN,
  METADATA_KEY_SHAPE,
  METADATA_MAX,
  METADATA_TEXT_MAX,
  SANDBOX_PAGE_MAX,
  SANDBOX_PAGE_STANDARD,
  WEBHOOK_TEXT_MAX,
} from './limits.ts';
import { BLOCK_ALL_BY, BURST_MIN_BYTES, SANDBOX_NETWORK_MODES } from './network.ts';
import { RetryClass, SentKinds, WatchIgnore } from './webhook.ts';
import { MANAGED_STATUSES, PERSISTENCES } from './words.ts';

/** Sandboxes as the manager takes and shows them. Contract section 7, "Sandboxes". */

/** The template of a claim that names none. */
export const DEFAULT_TEMPLATE = 'default';
/** A size of memory or disk in words. */
export const SIZE_SHAPE = 'a size like 128Mi or 1Gi, from 128Mi to 2048Ti';

const template_name = { pattern: TEMPLATE.source, description: '1 to 64 of A-Z a-z 0-9 _ - .' };
/** A template's name. */
const TemplateName = Type.String(template_name);
/** A duration in whole seconds; 0 is off. */
const Duration = integerFrom(0, DURATION_MAX_S);
/** Environment variables by name. */
const Variables = environmentOf(PlainText);
const Size = Type.String({ description: SIZE_SHAPE });
const MetadataText = Type.String({
  maxLength: METADATA_TEXT_MAX,
  pattern: '^[^\\u0000]*$',
  description: `a string of at most ${METADATA_TEXT_MAX} characters without NUL`,
});
/** Labels of a sandbox: texts by key. */
const Metadata = Type.Unsafe<Record<string, string>>({
  type: 'object',
  propertyNames: { pattern: METADATA_KEY_PATTERN, description: METADATA_KEY_SHAPE },
  additionalProperties: MetadataText,
});
const Cpu = Type.Union([Type.Number(), Text], { description: 'cores, like 0.5 or 2' });
const Burst = Type.Integer({
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: `0 is one second of the rate; values below ${BURST_MIN_BYTES} are raised to ${BURST_MIN_BYTES}`,
});

/** A claim's webhook. */
export const WebhookBody = namedObject('WebhookRequest', {
  url: Type.String({ maxLength: WEBHOOK_TEXT_MAX }),
  secret: Type.Optional(Type.String({ maxLength: WEBHOOK_TEXT_MAX })),
  watch_dir: Type.Optional(
    Type.String({
      maxLength: WEBHOOK_TEXT_MAX,
      pattern: '^/[^\\u0000]*$',
      description: `an absolute path of at most ${WEBHOOK_TEXT_MAX} characters`,
    }),
  ),
  watch_ignore: Type.Optional(WatchIgnore),
  events: Type.Optional(SentKinds),
  retry: Type.Optional(RetryClass),
});

const Resources = namedObject('ResourcesRequest', {
  memory: Type.Optional(Size),
  cpu: Type.Optional(Cpu),
  disk: Type.Optional(Size),
});
const Bandwidth = namedObject('BandwidthRequest', {
  egress_bandwidth_bytes_per_second: Type.Optional(Whole),
  ingress_bandwidth_bytes_per_second: Type.Optional(Whole),
  bandwidth_burst_bytes: Type.Optional(Burst),
});
const Network = namedObject('NetworkRequest', {
  mode: Type.Optional(Type.Enum(SANDBOX_NETWORK_MODES, { default: 'allow-all' })),
});

/** The schema of a claim. Source: contract section 7, POST `/api/v1/sandboxes`. */
export const ClaimBody = namedObject('ClaimSandboxRequest', {
  template: Type.Optional(Type.String({ ...template_name, default: DEFAULT_TEMPLATE })),
  config: Type.Optional(
    namedObject('ClaimConfig', {
      webhook: Type.Optional(WebhookBody),
      metadata: Type.Optional(Metadata),
      env_vars: Type.Optional(Variables),
      ttl: Type.Optional(Duration),
      hard_ttl: Type.Optional(Duration),
      idle_ttl: Type.Optional(Duration),
      auto_resume: Type.Optional(Type.Boolean({ default: false })),
      resources: Type.Optional(Resources),
      bandwidth: Type.Optional(Bandwidth),
      network: Type.Optional(Network),
    }),
  ),
});

const ForkConfig = namedObject('ForkConfig', {
  ttl: Type.Optional(Duration),
  hard_ttl: Type.Optional(Duration),
  webhook: Type.Optional(WebhookBody),
});

/** The schema of a PUT of a sandbox. Source: contract section 7. */
export const ChangeBody = namedObject('ChangeSandboxRequest', {
  config: namedObject('ChangeConfig', {
    resources: Type.Optional(namedObject('ResourcesChange', { memory: Type.Optional(Size) })),
    env_vars: Type.Optional(Variables),
    ttl: Type.Optional(Duration),
    hard_ttl: Type.Optional(Duration),
    idle_ttl: Type.Optional(Duration),
    auto_resume: Type.Optional(Type.Boolean()),
    // Listed, so that the refusal says why.
    webhook: Type.Optional(Type.Unknown({ description: 'refused: can only be set at claim' })),
  }),
});

/** Whether the processes are kept. */
const Memory = Type.Boolean({ default: true, description: 'whether processes are kept' });

/** The schema of a fork's body; durations and webhook are the source's unless given. A fork is of the disk, whatever `memory` says. */
export const ForkBody = namedObject('ForkSandboxRequest', {
  config: Type.Optional(ForkConfig),
  memory: Type.Optional(Memory),
});

/** The schema of a refresh's body; `duration` in seconds. */
export const RefreshBody = namedObject('RefreshSandboxRequest', { duration: Type.Optional(Duration) });

/** The schema of a pause's or resume's body. */
export const SwitchBody = namedObject('SandboxSwitchRequest', {
  reason: Type.Optional(Type.String({ maxLength: 1024 })),
  memory: Type.Optional(Memory),
});

/** A key of metadata, a colon, and its text. */
const METADATA_PAIR = METADATA_KEY_PATTERN.replace('$', `:[^\\u0000]{0,${METADATA_TEXT_MAX}}$`);

/** The status of a sandbox. */
const Status = Type.Enum(MANAGED_STATUSES, { title: 'ActiveStatus' });

/** The status in a record, which is kept for a while after the deletion. */
const RecordStatus = Type.Enum([...MANAGED_STATUSES, 'deleted'], { title: 'RecordStatus' });

/** What outlives what a sandbox runs in. */
const PersistenceValue = orNull(Type.Enum(PERSISTENCES, { title: 'Persistence' }));

/** The answer to a claim. */
export const ClaimedData = namedObject('ClaimedSandbox', {
  sandbox_id: Text,
  status: Status,
  pod_name: Text,
  runtime_id: Text,
  persistence: PersistenceValue,
  template: Text,
  cluster_id: Text,
});

/** A sandbox's traffic in one direction, in IP packet lengths. */
const Traffic = namedObject('Traffic', {
  passed_bytes: Whole,
  passed_packets: Whole,
  dropped_bytes: Whole,
  dropped_packets: Whole,
  waited_ms: Whole,
});
export type DirectionUsage = Static<typeof Traffic>;

const Usage = namedObject('NetworkUsage', { egress: Traffic, ingress: Traffic });
export type NetworkUsage = Static<typeof Usage>;

/** What a sandbox leases, as given or by default: `{"memory":"512Mi","cpu":0.1,"disk":"10Gi"}`. */
const Leased = namedObject('SandboxResources', {
  memory: Text,
  cpu: Type.Union([Type.Number(), Text]),
  disk: Text,
});
export type SandboxResources = Static<typeof Leased>;

/** A sandbox's own bandwidth. A rate of 0 is none; a burst of 0 is one second of the rate. */
const OwnBandwidth = namedObject('SandboxBandwidth', {
  egress_bandwidth_bytes_per_second: Whole,
  ingress_bandwidth_bytes_per_second: Whole,
  // For both directions; below 64 KiB it is raised to 64 KiB.
  bandwidth_burst_bytes: Whole,
});
export type SandboxBandwidth = Static<typeof OwnBandwidth>;

const NetworkView = namedObject('SandboxNetwork', {
  mode: Type.Enum(SANDBOX_NETWORK_MODES),
  // Null for `allow-all`.
  enforced_by: orNull(Type.Enum(BLOCK_ALL_BY)),
});
export type SandboxNetworkView = Static<typeof NetworkView>;

const WebhookView = namedObject('SandboxWebhook', {
  url: Text,
  watch_dir: OptionalText,
  watch_ignore: WatchIgnore,
  // As given, or all of them.
  events: SentKinds,
  retry: RetryClass,
  // The secret itself is never shown.
  has_secret: Type.Boolean(),
});

/** A sandbox as the manager shows it. */
export const SandboxData = namedObject('Sandbox', {
  id: Text,
  template_id: Text,
  team_id: Text,
  // `deleted` only where deleted ones are asked for, for 24 h after the end of a deletion.
  status: RecordStatus,
  // Why the status is `failed`, otherwise null.
  failure: orNull(Type.Literal('runtime_lost')),
  paused: Type.Boolean(),
  auto_resume: Type.Boolean(),
  // 0 is off.
  idle_ttl: Duration,
  pod_name: OptionalText,
  // The same as `pod_name`, under the name that newer clients read.
  runtime_id: OptionalText,
  // Null where it has no root of its own, and until it runs.
  persistence: PersistenceValue,
  // Increases by 1 with each resume.
  runtime_generation: Type.Integer(),
  resources: Leased,
  // As given or by default.
  bandwidth: OwnBandwidth,
  network: NetworkView,
  // At most 10 s old in lists; null where its bytes are not counted.
  network_usage: orNull(Usage),
  // Null where none is configured.
  webhook: orNull(WebhookView),
  // Labels given at the claim.
  metadata: Type.Record(Text, Text),
  // The names of `env_vars`, sorted; empty once the sandbox is deleted.
  env_names: Type.Array(Text),
  expires_at: OptionalTime,
  hard_expires_at: OptionalTime,
  claimed_at: OptionalTime,
  created_at: Time,
  updated_at: Time,
});
export type ManagedSandbox = Static<typeof SandboxData>;

/** A page of sandboxes. */
export const SandboxListData = namedObject('SandboxList', {
  sandboxes: Type.Array(SandboxData),
  count: Type.Integer(),
  has_more: Type.Boolean(),
});

/** The status of a sandbox with its times. */
export const StatusData = namedObject('SandboxStatus', {
  sandbox_id: Text,
  template_id: Text,
  team_id: Text,
  pod_name: OptionalText,
  runtime_id: OptionalText,
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
  sandbox_id: Text,
  paused: Type.Boolean(),
  status: Status,
  memory: Kept,
});

/** The answer to a resume. */
export const ResumedData = namedObject('ResumedSandbox', {
  sandbox_id: Text,
  resumed: Type.Boolean(),
  memory: Kept,
});

/** The answer to a fork. */
export const ForkedData = namedObject('ForkedSandbox', {
  source_sandbox_id: Text,
  sandbox: SandboxData,
  memory: Kept,
});

/** The answer to a refresh. */
export const RefreshedData = namedObject('RefreshedSandbox', {
  sandbox_id: Text,
  expires_at: OptionalTime,
  hard_expires_at: OptionalTime,
});

/** The answer to a deletion. */
export const DeletedSandboxData = namedObject('DeletedSandbox', { message: Text });

/** The query of one sandbox. */
export const OneQuery = closedObject({
  include_deleted: defaulted(Type.Boolean({ default: false, description: 'also its last record, for 24 h' })),
});

/** The query of a list of sandboxes. */
export const ListQuery = closedObject({
  status: Type.Optional(Status),
  template_id: Type.Optional(TemplateName),
  paused: Type.Optional(Type.Boolean()),
  metadata: Type.Optional(
    Type.Array(Type.String({ pattern: METADATA_PAIR }), {
      maxItems: METADATA_MAX,
      description: `at most ${METADATA_MAX} pairs of the form key:text`,
    }),
  ),
  limit: pageLimit(SANDBOX_PAGE_STANDARD, SANDBOX_PAGE_MAX),
  offset: defaulted(Type.Integer({ minimum: 0, default: 0 })),
});
