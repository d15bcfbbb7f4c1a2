import { type Static, Type } from 'typebox';
import { LIFECYCLE_PAGE_RECORDS, WEBHOOK_EGRESSES } from './control-socket.ts';
import { EndpointData, OutboxCountsData } from './deliveries.ts';
import {
  closedObject,
  defaulted,
  environmentOf,
  integerFrom,
  namedObject,
  OptionalText,
  openObject,
  orNull,
  PlainText,
  pageLimit,
  ResourceUsageData,
  Text,
  Whole,
} from './field.ts';
import { RetryClass, SentKinds, WatchIgnore } from './webhook.ts';

/** The sandbox as its daemon shows and changes it. Contract section 4, "The sandbox". */

/** `awaiting_init` is a daemon of a warm pool. */
const State = Type.Enum(['awaiting_init', 'running', 'paused', 'stopping'], { title: 'SandboxState' });
export type SandboxState = Static<typeof State>;

/** The state of the directory watch, in `GET /sandbox`, `/metrics` and `/readyz`. */
const Watcher = namedObject('WatcherState', {
  watch_dir: Text,
  // `waiting`: the directory does not exist, or no longer does.
  state: Type.Enum(['starting', 'watching', 'waiting', 'stopped']),
  directories_watched: Whole,
  // Compared at intervals, because the kernel's limit on watches is reached.
  directories_compared: Whole,
  directories_unreadable: Whole,
  // Known files and directories.
  index_size: Whole,
  // Names waiting to be examined or written.
  queued: Whole,
  // Committed since the start.
  events: Whole,
  // Comparisons since the start, by reason: `start`, `resume`, `overflow`, `uncovered`, `root_replaced`.
  reconciles: Type.Record(Text, Whole),
  // One sentence about what is lost or only compared at intervals; null where nothing is.
  degraded: OptionalText,
});
export type WatcherStatus = Static<typeof Watcher>;

/** The sandbox as its daemon shows it. */
export const SandboxViewData = namedObject('SandboxView', {
  sandbox_id: Text,
  team_id: Text,
  state: State,
  version: Text,
  uptime_ms: Whole,
  outbox: OutboxCountsData,
  // Null where no webhook is configured.
  endpoint: orNull(EndpointData),
  // Null where no directory is watched.
  watcher: orNull(Watcher),
  resource_usage: ResourceUsageData,
});
export type SandboxView = Static<typeof SandboxViewData>;

/** The state after a pause or resume, and whether the processes were kept. */
export const SwitchedData = namedObject('SwitchedState', { state: State, memory: Type.Boolean() });

/** The state after a change of it. */
export const StateData = namedObject('ChangedState', { state: State });

/** A daemon's version, and what it has learned since the first of that major number. */
export const VERSION_FIELDS = { version: Text, features: Type.Array(Text) };

/** The answer to an init. */
export const InitialisedData = namedObject('Initialised', { state: State, ...VERSION_FIELDS });

/** A `sandbox.*` record as the daemon has stored it: everything that its `mac` authenticates, and what it is stored with. */
const StoredRecord = namedObject('LifecycleRecord', {
  event_id: Text,
  event_type: Text,
  sandbox_id: Text,
  sequence: integerFrom(1),
  headers: Type.String({ description: 'JSON text' }),
  body: Text,
  // CRC-32 of headers and body.
  checksum: Type.Integer(),
  // Wall time of its commit.
  created_at_ms: Type.Integer(),
  mac: Type.String({ pattern: '^[0-9a-f]{64}$' }),
});
export type LifecycleRecord = Static<typeof StoredRecord>;

/** The sandbox's own `sandbox.*` records, as its manager reads them. */
export const LifecycleData = namedObject('LifecycleRecords', { records: Type.Array(StoredRecord) });

/** The query of these records. */
export const LifecycleQuery = closedObject({
  after: defaulted(Type.Integer({ minimum: 0, default: 0 })),
  limit: pageLimit(LIFECYCLE_PAGE_RECORDS, LIFECYCLE_PAGE_RECORDS),
});

/** The webhook of an init. */
export const InitWebhook = openObject('InitWebhook', {
  url: Text,
  secret: Type.Optional(Text),
  watch_dir: Type.Optional(Text),
  watch_ignore: Type.Optional(WatchIgnore),
  events: Type.Optional(SentKinds),
  retry: Type.Optional(RetryClass),
  // The URL comes from a third party: only public addresses and these ranges may be dialled.
  allow_cidrs: Type.Optional(Type.Array(Text)),
  egress: Type.Optional(Type.Enum(WEBHOOK_EGRESSES)),
});

/** The body of an init. */
export const InitBody = openObject('InitSandboxRequest', {
  sandbox_id: Type.String({ minLength: 1 }),
  team_id: Text,
  // Absent for a sandbox that was claimed without a webhook.
  webhook: Type.Optional(InitWebhook),
  env: Type.Optional(environmentOf(PlainText)),
  // Only from the manager, over the control socket: anyone who knows it could forge records.
  record_key: Type.Optional(Text),
});

/** The body that sets environment variables; null removes one. */
export const EnvBody = namedObject('EnvironmentRequest', { env: environmentOf(orNull(PlainText)) });

/** The answer to it. */
export const NamesData = namedObject('EnvironmentNames', { names: Type.Array(Text) });

/** The body of a daemon's pause or resume. */
export const DaemonSwitchBody = namedObject('SandboxSwitchRequest', {
  reason: Type.Optional(orNull(Type.String({ maxLength: 1024 }))),
  memory: Type.Optional(Type.Boolean({ default: true })),
  flush_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 60_000 })),
});
