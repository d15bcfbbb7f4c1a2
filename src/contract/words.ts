/**
 * The closed lists of the contract's words. The programs read them where they start, before any schema is loaded; the
 * schemas of the nouns take them from here.
 */

/** The states of a record. `pending` includes one that is being retried; `foreign` was left by another sandbox. */
export const DELIVERY_STATES = ['pending', 'delivered', 'failed', 'expired', 'foreign'] as const;

/** One of `DELIVERY_STATES`. */
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** The states of a record that is no longer attempted, in which it can be replayed. */
export const FINAL_STATES = ['failed', 'expired', 'delivered'] as const satisfies DeliveryState[];

/** One of `FINAL_STATES`. */
export type FinalState = (typeof FINAL_STATES)[number];

/** The states of a record that was not delivered and is no longer attempted: those that make room in a full outbox. */
export const UNDELIVERED_STATES = ['failed', 'expired'] as const satisfies FinalState[];

/** One of `UNDELIVERED_STATES`. */
export type UndeliveredState = (typeof UNDELIVERED_STATES)[number];

/** Why an attempt got no response head; `blocked` is an address that the address guard refuses. */
export const ATTEMPT_ERRORS = ['dns', 'connect', 'tls', 'timeout', 'reset', 'protocol', 'blocked'] as const;

/** One of `ATTEMPT_ERRORS`. */
export type AttemptError = (typeof ATTEMPT_ERRORS)[number];

/**
 * Which refused attempts are made again: `transient`, 408, 425, 429 and 5xx; `any`, every status that is no 2xx, except 410.
 * What got no answer is tried again with both. Contract section 3, "Success, retry, terminal".
 */
export const WEBHOOK_RETRIES = ['transient', 'any'] as const;

/** One of `WEBHOOK_RETRIES`. */
export type WebhookRetry = (typeof WEBHOOK_RETRIES)[number];

/** The health of an endpoint. Contract section 3, "Endpoint down" and "Endpoint that refuses". */
export const ENDPOINT_HEALTHS = ['ok', 'backing_off', 'rejecting'] as const;

/** The states of a supervised process; `restarting` is the delay between two runs. */
export const PROCESS_STATES = ['running', 'paused', 'exited', 'crashed', 'restarting'] as const;

/** One of `PROCESS_STATES`. */
export type ProcessState = (typeof PROCESS_STATES)[number];

/** When an ended process is started again. */
export const RESTART_POLICIES = ['never', 'on-failure', 'always'] as const;

/** One of `RESTART_POLICIES`. */
export type RestartPolicy = (typeof RESTART_POLICIES)[number];

/** The output streams of a process. */
export const OUTPUT_STREAMS = ['stdout', 'stderr'] as const;

/** One of `OUTPUT_STREAMS`. */
export type OutputStream = (typeof OUTPUT_STREAMS)[number];

/** The statuses of a sandbox in the manager. Contract section 7, "Sandboxes". */
export const MANAGED_STATUSES = ['starting', 'running', 'paused', 'terminating', 'failed'] as const;

/** One of `MANAGED_STATUSES`. */
export type ManagedStatus = (typeof MANAGED_STATUSES)[number];

/**
 * What of a sandbox's files outlives what it runs in, and is in its forks.
 * - `root`: all of them
 * - `volume`: its working folder and its daemon's state; the rest of its root is the image's
 */
export const PERSISTENCES = ['root', 'volume'] as const;

/** One of `PERSISTENCES`. */
export type Persistence = (typeof PERSISTENCES)[number];

/** The unit of a quota's numbers. */
export const QUOTA_UNITS = ['count', 'claims', 'requests', 'bytes'] as const;

/** What a dimension limits: how much at once (`capacity`), or how much per time (`rate`). */
export const DIMENSION_KINDS = ['capacity', 'rate'] as const;

/** One of `DIMENSION_KINDS`. */
export type DimensionKind = (typeof DIMENSION_KINDS)[number];

interface DimensionFacts {
  kind: DimensionKind;
  unit: (typeof QUOTA_UNITS)[number];
}

/** Every dimension, in the order in which they are listed. */
const DIMENSION_FACTS = {
  active_sandboxes: { kind: 'capacity', unit: 'count' },
  sandbox_claims: { kind: 'rate', unit: 'claims' },
  api_requests: { kind: 'rate', unit: 'requests' },
  network_egress_bytes: { kind: 'rate', unit: 'bytes' },
  network_ingress_bytes: { kind: 'rate', unit: 'bytes' },
} as const satisfies Record<string, DimensionFacts>;

/** The name of a dimension. */
export type Dimension = keyof typeof DIMENSION_FACTS;

/** Every dimension, in the order in which they are listed. */
export const DIMENSIONS = Object.keys(DIMENSION_FACTS) as Dimension[];

/** The kind and unit of a dimension. */
export function factsOf(dimension: Dimension): DimensionFacts {
  return DIMENSION_FACTS[dimension];
}

/** Every window type, with the unit of its value. */
const WINDOW_UNITS = {
  /** MiB leased × milliseconds. */
  'sandbox.runtime_mib_milliseconds': 'mib_milliseconds',
  /** Thousandths of a core leased × milliseconds. */
  'sandbox.runtime_millicpu_milliseconds': 'millicpu_milliseconds',
  'sandbox.egress_bytes': 'bytes',
  'sandbox.ingress_bytes': 'bytes',
  /** Bytes that the manager carried, both ways together. */
  'sandbox.transfer_bytes': 'bytes',
} as const;

/** What a window measures. */
export type WindowType = keyof typeof WINDOW_UNITS;

/** The unit of a window's value. */
export type WindowUnit = (typeof WINDOW_UNITS)[WindowType];

/** Every window type. */
export const WINDOW_TYPES = Object.keys(WINDOW_UNITS) as WindowType[];

/** The unit of a window type's values. */
export function unitOf(window_type: WindowType): WindowUnit {
  return WINDOW_UNITS[window_type];
}
