import { Type } from 'typebox';
import { DELIVERY_STATES } from '../deliveries.ts';
import { ENDPOINT_HEALTHS } from '../sandboxes.ts';
import { ResourceUsageData } from './events.ts';
import { namedObject, OptionalTime, orNull } from './field.ts';
import { integerFrom } from './query.ts';

/** Schemas of the answers of a daemon's sandbox routes, for documents. Contract section 4, "The sandbox". */

const Text = Type.String();
const Whole = integerFrom(0);
const State = Type.Enum(['awaiting_init', 'running', 'paused', 'stopping'], { title: 'SandboxState' });

const Outbox = namedObject('OutboxCounts', {
  ...(Object.fromEntries(DELIVERY_STATES.map((state) => [state, Whole])) as Record<
    (typeof DELIVERY_STATES)[number],
    typeof Whole
  >),
  bytes: Whole,
});

const Watcher = namedObject('WatcherState', {
  watch_dir: Text,
  state: Type.Enum(['starting', 'watching', 'waiting', 'stopped']),
  directories_watched: Whole,
  directories_compared: Whole,
  directories_unreadable: Whole,
  index_size: Whole,
  queued: Whole,
  events: Whole,
  reconciles: Type.Record(Text, Whole),
  degraded: orNull(Text),
});

const Endpoint = namedObject('EndpointHealth', {
  health: Type.Enum(ENDPOINT_HEALTHS),
  next_probe_at: OptionalTime,
  refusals: orNull(namedObject('EndpointRefusals', { status: Type.Integer(), count: Whole })),
});

/** The sandbox as its daemon shows it. */
export const SandboxViewData = namedObject('SandboxView', {
  sandbox_id: Text,
  team_id: Text,
  state: State,
  version: Text,
  uptime_ms: Whole,
  outbox: Outbox,
  endpoint: orNull(Endpoint),
  watcher: orNull(Watcher),
  resource_usage: ResourceUsageData,
});

/** The state after a pause or resume, and whether the processes were kept. */
export const SwitchedData = namedObject('SwitchedState', { state: State, memory: Type.Boolean() });

/** The state after a change of it. */
export const StateData = namedObject('ChangedState', { state: State });

/** A daemon's version, and what it has learned since the first of that major number. */
export const VERSION_FIELDS = { version: Type.String(), features: Type.Array(Type.String()) };

/** The answer to an init. */
export const InitialisedData = namedObject('Initialised', { state: State, ...VERSION_FIELDS });

/** The sandbox's own `sandbox.*` records, as its manager reads them. */
export const LifecycleData = namedObject('LifecycleRecords', {
  records: Type.Array(
    namedObject('LifecycleRecord', {
      event_id: Type.String(),
      event_type: Type.String(),
      sandbox_id: Type.String(),
      sequence: Type.Integer({ minimum: 1 }),
      headers: Type.String({ description: 'JSON text' }),
      body: Type.String(),
      checksum: Type.Integer(),
      created_at_ms: Type.Integer(),
      mac: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    }),
  ),
});
