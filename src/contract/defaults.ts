/** Every default value and limit, with its unit and the reason for it. Source: contract sections 3 and 4. */

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const MIB = 1024 * 1024;

export const DEFAULT_HOST = 'localhost';
export const DEFAULT_PORT = 49_983;
export const DEFAULT_STATE_DIR = '/var/lib/sandboxd';
export const DEFAULT_URL = `http://localhost:${DEFAULT_PORT}`;

/** Delivery. */
export const CONNECT_TIMEOUT_MS = 5 * SECOND_MS;
export const ATTEMPT_TIMEOUT_MS = 15 * SECOND_MS;
export const DELIVERY_WINDOW_MS = DAY_MS;
export const DELIVERY_CONCURRENCY = 16;
export const BACKOFF_FIRST_MS = 500;
export const BACKOFF_CAP_MS = 5 * MINUTE_MS;
export const BACKOFF_JITTER = 0.2;
export const RETRY_AFTER_CAP_MS = HOUR_MS;
/** Failed attempts in a row that back off the endpoint. */
export const ENDPOINT_FAILURES = 3;
export const ENDPOINT_BACKOFF_CAP_MS = 30 * SECOND_MS;
/** A response body is read to this length, so that its connection can be used again, and thrown away. */
export const RESPONSE_READ_BYTES = 64 * 1024;
/** How much of a response body is kept on the attempt. */
export const RESPONSE_KEEP_BYTES = 1024;
/** How long a response's body may take after its head before its connection is given up. */
export const RESPONSE_BODY_TIMEOUT_MS = SECOND_MS;

/** Outbox. */
export const OUTBOX_MAX_BYTES = 256 * MIB;
export const OUTBOX_MAX_RECORDS = 1_000_000;
/** Lifecycle and process events have this many records above the bound. */
export const OUTBOX_RESERVE_RECORDS = 1_000;
export const RETAIN_DELIVERED_MS = HOUR_MS;
export const RETAIN_DELIVERED_RECORDS = 10_000;
/** What delivered records may take, as a share of the bound for bytes. */
export const RETAIN_DELIVERED_SHARE = 0.25;
export const RETAIN_FAILED_MS = 7 * DAY_MS;
/** A commit that takes longer is answered `outbox_unavailable`, within 10 s; the record may still be kept. */
export const COMMIT_TIMEOUT_MS = 9_500;

/** The manager's outbox. */
/** Attempts under way in all, whatever their endpoints. */
export const ATTEMPTS_MAX = 256;
/** How long a replica owns endpoints without saying so again; longer than an attempt, so that none outlives it. */
export const OUTBOX_LEASE_MS = 20 * SECOND_MS;
/** Final records are kept so long after they end. */
export const RETAIN_FINAL_MS = DAY_MS;

/** Processes. */
export const SHUTDOWN_GRACE_MS = 10 * SECOND_MS;
export const RESTART_BACKOFF_FIRST_MS = SECOND_MS;
export const RESTART_BACKOFF_CAP_MS = 30 * SECOND_MS;
/** A process that stayed up this long starts its backoff anew. */
export const RESTART_RESET_MS = MINUTE_MS;
export const ENDED_PROCESSES_MAX = 1_000;
export const ENDED_PROCESSES_MAX_BYTES = 256 * MIB;
export const ENDED_PROCESSES_RETAIN_MS = DAY_MS;
export const OUTPUT_KEEP_BYTES = 8 * MIB;
export const OUTPUT_PREVIEW_BYTES = 2 * 1024;
/** The size at which a file of kept output is finished: kept are two finished ones and the present one. */
export const OUTPUT_SEGMENT_BYTES = 4 * MIB;
/** What is read of a process and not yet on disk before reading it pauses, per stream. */
export const OUTPUT_PENDING_BYTES = 256 * 1024;
/** One read of a follower, and one write to a process's stdin. */
export const OUTPUT_CHUNK_BYTES = 64 * 1024;
/** Jitter of the delay before a restart. */
export const RESTART_JITTER = 0.2;
/** Events of one process that wait for the disk before its restarts wait too. */
export const PROCESS_EVENTS_WAITING_MAX = 100;
/** Delay before an event that could not be stored is tried again, and its cap. */
export const PROCESS_EVENT_RETRY_MS = 250;
export const PROCESS_EVENT_RETRY_CAP_MS = 5 * SECOND_MS;
/** How long a start may wait for the end. */
export const PROCESS_WAIT_MAX_MS = 10 * MINUTE_MS;
/** How much of each stream a start that waits answers. */
export const OUTPUT_ANSWER_BYTES = MIB;
/** Processes that run at once; one more is refused. */
export const PROCESSES_LIVE_MAX = 4_096;

/** The local API. */
export const BODY_MAX_BYTES = MIB;
export const PAYLOAD_MAX_DEPTH = 100;
export const HEADERS_TIMEOUT_MS = 5 * SECOND_MS;
export const REQUEST_TIMEOUT_MS = 15 * SECOND_MS;
export const CONNECTIONS_MAX = 256;
export const LIST_LIMIT = 100;
export const LIST_LIMIT_MAX = 1_000;
/** How long a pause waits for what is pending to be delivered. */
export const PAUSE_FLUSH_MS = 2 * SECOND_MS;
/** How long `POST /webhook/test` waits for its delivery. */
export const WEBHOOK_TEST_WAIT_MS = 15 * SECOND_MS;

/** Quotas. */
/** A rate authority that takes longer does not answer. */
export const RATE_TIMEOUT_MS = 100;
