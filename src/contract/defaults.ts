/**
 * The defaults and limits that the contract names, each with its unit (last in its name) and its reason. Limits that
 * concern one file alone stand in that file.
 */

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const MIB = 1024 * 1024;

// Where the daemon is found. Contract section 4, "Options".

/** Host that the local API listens on: loopback, because publishing requires no token. */
export const DEFAULT_HOST = 'localhost';
/** TCP port of the local API: in the dynamic range (from 49152), where no registered service is expected. */
export const DEFAULT_PORT = 49_983;
/** The daemon's directory for everything that must survive a restart; `/var/lib` by the Filesystem Hierarchy Standard. */
export const DEFAULT_STATE_DIR = '/var/lib/sandboxd';
/** Where clients look for the daemon unless they are given another URL. */
export const DEFAULT_URL = `http://localhost:${DEFAULT_PORT}`;

// Delivery. Contract section 3.

/** Time to establish a connection, TLS included, in ms: a host that is up answers well within it. */
export const CONNECT_TIMEOUT_MS = 5 * SECOND_MS;
/** Time for one whole attempt, in ms, so that no receiver occupies a slot for longer. */
export const ATTEMPT_TIMEOUT_MS = 15 * SECOND_MS;
/** How long a record is retried after its commit, in ms: an outage of most of a day loses nothing. */
export const DELIVERY_WINDOW_MS = DAY_MS;
/** Attempts in flight per endpoint: enough to hide the network's latency without flooding a small receiver. */
export const DELIVERY_CONCURRENCY = 16;
/** A record's wait after its first failed attempt, in ms: a brief hiccup costs little. */
export const BACKOFF_FIRST_MS = 500;
/** The factor by which that wait grows with each further failed attempt. */
export const BACKOFF_FACTOR = 2;
/** Longest wait of a record between attempts, in ms, so that a recovered receiver is noticed within minutes. */
export const BACKOFF_CAP_MS = 5 * MINUTE_MS;
/** Jitter of each backoff as a fraction, up or down, so that records that failed together do not return together. */
export const BACKOFF_JITTER = 0.2;
/**
 * Retries of one endpoint that wait in memory for their time; the others are read again when they are due. As many as one
 * read takes, so that a receiver that refuses a few records costs no read, and an outage costs no memory.
 */
export const RETRIES_WAITING_MAX = 64;
/** Bytes of their bodies, where the engine keeps them in memory. */
export const RETRIES_WAITING_MAX_BYTES = MIB;
/** Longest `Retry-After` that is obeyed, in ms, so that a careless receiver cannot use up the whole window. */
export const RETRY_AFTER_CAP_MS = HOUR_MS;
/** Consecutive failures that put the endpoint into backoff: one or two may be the fault of a record. */
export const ENDPOINT_FAILURES = 3;
/** Refused attempts in a row after which an endpoint is rejecting, and the events that they are of at least: one may be to blame. */
export const ENDPOINT_REFUSALS = 5;
export const ENDPOINT_REFUSED_EVENTS = 2;
/** Longest wait between two probes of an endpoint in backoff, in ms: the delay after an outage is at most this. */
export const ENDPOINT_BACKOFF_CAP_MS = 30 * SECOND_MS;
/** A response body is read up to this many bytes, so that its connection can be reused; a longer one is cut off. */
export const RESPONSE_READ_BYTES = 64 * 1024;
/** The names and values of a response's headers together; above what servers in use send, and a receiver's to fill. */
export const RESPONSE_HEADERS_MAX_BYTES = 64 * 1024;
/** Bytes of a response body that are kept with the attempt: enough for an error message. */
export const RESPONSE_KEEP_BYTES = 1024;
/** Characters of the line that says why an attempt failed: it may hold text of the receiver. */
export const ERROR_DETAIL_MAX_CHARACTERS = 256;
/** Time for a response body after its head, in ms; then its connection is closed. The outcome is known by then. */
export const RESPONSE_BODY_TIMEOUT_MS = SECOND_MS;

// Templates of sandboxes in a cluster. Contract section 7, "Kubernetes".

/** What a sandbox may write outside of its volume, in MiB: room for builds and packages in `/tmp`, and a small part of a node. */
export const EPHEMERAL_MIB = 1024;
/** The same where the root is on the volume, in MiB: what is left are its output as its node keeps it, 50 MiB, and the mount points. */
export const EPHEMERAL_WITH_ROOT_MIB = 128;

// The daemon's outbox. Contract section 3, "Bounds" and "Retention".

/** Most bytes of undelivered records: a sandbox's disk must not fill up during an outage. */
export const OUTBOX_MAX_BYTES = 256 * MIB;
/** Most undelivered records: bounds the time of a start and of a handover, however small the records are. */
export const OUTBOX_MAX_RECORDS = 1_000_000;
/** Records above the bound for lifecycle and process events, so that publishes cannot crowd them out. */
export const OUTBOX_RESERVE_RECORDS = 1_000;
/** How long a delivered record is kept, in ms, for inspection and replay. */
export const RETAIN_DELIVERED_MS = HOUR_MS;
/** Most delivered records that are kept. */
export const RETAIN_DELIVERED_RECORDS = 10_000;
/** Most bytes of delivered records, as a fraction of the bound for bytes: they must not squeeze out new ones. */
export const RETAIN_DELIVERED_SHARE = 0.25;
/** How long a failed or expired record is kept at most, in ms: a person has a week to look at it and replay it. */
export const RETAIN_FAILED_MS = 7 * DAY_MS;
/** Most `sandbox.*` records that are kept for the manager beyond their deliveries: it reads each soon after its commit. */
export const RETAIN_LIFECYCLE_RECORDS = 1_000;
/**
 * Time for a commit, in ms; then the publish is answered `outbox_unavailable`, although the record may still be kept.
 * Leaves half a second of the 10 s that contract section 3, "Disk trouble", promises.
 */
export const COMMIT_TIMEOUT_MS = 9_500;

/** Publishes that wait for their answer; one more is refused at once. More than there can be connections. */
export const PUBLISHES_WAITING_MAX = 4_096;
/** Bytes of payloads that wait for their answer, those up to `SMALL_BODY_BYTES` apart: a disk that hangs must not cost memory. */
export const PUBLISHES_WAITING_MAX_BYTES = 16 * MIB;

/** How long the manager's feed keeps an event, in ms: a consumer that was away for a week misses nothing. */
export const FEED_KEPT_MS = 7 * DAY_MS;
/** How many of its events the manager's feed keeps for a team: one that pauses and resumes all day must not fill the database of all. */
export const FEED_KEPT_MAX = 200_000;

// The manager's outbox. Contract section 7, "`sandbox.deleted`" and "Limits of a team".

/** Attempts in flight over all endpoints: bounds the sockets and memory of a manager. */
export const ATTEMPTS_MAX = 256;
/** How long a replica owns an endpoint without renewing its lease, in ms: longer than an attempt, so that none outlives it. */
export const OUTBOX_LEASE_MS = 20 * SECOND_MS;
/** How long a final record is kept after it ended, in ms: a day to see what became of a deletion. */
export const RETAIN_FINAL_MS = DAY_MS;
/** Pending records from which a team's claims of sandboxes with a webhook are refused, and its records that are kept in all. */
export const TEAM_UNDELIVERED_RECORDS = 20_000;
/** The same limit in bytes: one team must not fill the database of all. */
export const TEAM_UNDELIVERED_BYTES = 1024 * MIB;

// Processes. Contract section 4, "Processes: retention, timeouts, restarts".

/** Time from SIGTERM to SIGKILL, in ms: what container runtimes give by default. */
export const SHUTDOWN_GRACE_MS = 10 * SECOND_MS;
/** Delay before the first restart, in ms; doubles with each further one, so that a crash loop costs little. */
export const RESTART_BACKOFF_FIRST_MS = SECOND_MS;
/** Longest delay before a restart, in ms. */
export const RESTART_BACKOFF_CAP_MS = 30 * SECOND_MS;
/** A process that stayed up this long, in ms, is taken as recovered: its backoff starts anew. */
export const RESTART_RESET_MS = MINUTE_MS;
/** Jitter of the delay before a restart as a fraction, up or down, so that processes do not restart in step. */
export const RESTART_JITTER = 0.2;
/** Most ended processes that are kept with their output. */
export const ENDED_PROCESSES_MAX = 1_000;
/** Most bytes of ended processes' output and requests: they share the sandbox's disk with its work. */
export const ENDED_PROCESSES_MAX_BYTES = 256 * MIB;
/** How long an ended process is kept, in ms. */
export const ENDED_PROCESSES_RETAIN_MS = DAY_MS;
/** Bytes of each stream that can always be replayed. */
export const OUTPUT_KEEP_BYTES = 8 * MIB;
/** Bytes of each stream's end that an exit event carries: enough for a stack trace, small in an outbox of many. */
export const OUTPUT_PREVIEW_BYTES = 2 * 1024;
/** Bytes at which a segment of kept output is finished; two finished ones and the current one are kept. */
export const OUTPUT_SEGMENT_BYTES = 4 * MIB;
/**
 * Bytes read of a stream and not yet on disk, or not yet taken by a lossless follower, at which reading pauses, so that
 * neither costs memory.
 */
export const OUTPUT_PENDING_BYTES = MIB;
/** The same of all streams together, in bytes: of more, no process is read until some are on disk. */
export const OUTPUT_PENDING_ALL_BYTES = 16 * MIB;
/** The newest bytes of all followed streams in memory; beyond that each keeps little, and slow followers read the disk. */
export const OUTPUT_RECENT_ALL_BYTES = 16 * MIB;
/** The newest bytes of a stream that are kept in memory while it is followed. */
export const OUTPUT_RECENT_BYTES = MIB;
/** How long a lossless follower may take nothing of what it is offered, in ms, until it is dropped. */
export const LOSSLESS_STALL_MS = MINUTE_MS;
/** Bytes of one read by a follower and of one write to a process's stdin: the capacity of a Linux pipe. */
export const OUTPUT_CHUNK_BYTES = 64 * 1024;
/** Events of one process waiting for the disk at which its restarts wait too: a crash loop must not fill the memory. */
export const PROCESS_EVENTS_WAITING_MAX = 100;
/** What the waiting events of all processes may take in memory, in bytes, until nothing more is started: they are kept. */
export const PROCESS_EVENTS_WAITING_MAX_BYTES = 16 * MIB;
/** About how many bytes of processes a page holds: bounds the memory of one answer whose texts are long. */
export const PROCESS_PAGE_BYTES = MIB;
/** What the requests of starts under way may take in memory, in bytes: several of the largest. */
export const PROCESS_STARTS_MAX_BYTES = 64 * MIB;
/** Characters of a process's name and of its account: they are kept in memory and shown in lists. */
export const KEPT_TEXT_MAX = 256;
/** Characters of the text by which a process is ready: it is looked for in every piece of output. */
export const READY_TEXT_MAX = 1_024;
/** Characters of the path of a working directory: PATH_MAX of the kernel, which refuses longer ones. */
export const PATH_MAX_CHARACTERS = 4_096;
/** Bytes of a command that are kept in memory and shown in lists: it says what runs, and the whole is on disk. */
export const COMMAND_SHOWN_BYTES = 1024;
/** Delay before an event that could not be stored is tried again, in ms; doubles with each further try. */
export const PROCESS_EVENT_RETRY_MS = 250;
/** Longest delay between two tries to store an event, in ms. */
export const PROCESS_EVENT_RETRY_CAP_MS = 5 * SECOND_MS;
/** Longest time that a start may wait for the process's end, in ms: a connection is not held for longer. */
export const PROCESS_WAIT_MAX_MS = 10 * MINUTE_MS;
/** Bytes of each stream in the answer to a start that waits for the end. */
export const OUTPUT_ANSWER_BYTES = MIB;
/** Processes that run at once; one more is refused with `too_many_requests`. Bounds descriptors and memory. */
export const PROCESSES_LIVE_MAX = 4_096;
/**
 * Time to read a file of the sandbox that the daemon itself needs, such as /etc/passwd, in ms: a request waits for it, and only
 * a file system that does not answer takes longer.
 */
export const READ_OUTSIDE_TIMEOUT_MS = 2 * SECOND_MS;
/**
 * Time for a start until the program runs, in ms. It takes a millisecond; what is slower waits for a file system, and a network
 * file system that recovers does so in seconds.
 */
export const LAUNCH_TIMEOUT_MS = 10 * SECOND_MS;
/** The same time once the processes are to be paused, in ms: a pause waits for it. */
export const LAUNCH_PAUSE_MS = SECOND_MS;
/** Starts that are under way at once: as many as there can be connections. Bounds descriptors and memory. */
export const LAUNCHES_MAX = 256;
/** Starts that were given up and cannot end, at which further ones are refused: each holds a process and its pipes. */
export const LAUNCHES_GIVEN_UP_MAX = 64;

// The HTTP APIs. Contract section 4, "The local API" and "Browsers and slow clients".

/** Longest request body, in bytes, and so the longest payload; a larger body is never read whole. */
export const BODY_MAX_BYTES = MIB;
/** Bytes of all bodies that are being read: bounds the memory that clients without a token can take. Small ones are not counted. */
export const BODIES_MAX_BYTES = 32 * MIB;
/** Values in a body of JSON, those of all its lists and objects: a list of files is shorter, and each takes microseconds to check. */
export const BODY_VALUES_MAX = 16_384;
/** Variables in an environment that a request sets: of more, a start takes tens of milliseconds in which nobody else is answered. */
export const VARIABLES_MAX = 4_096;
/** A body of up to this many bytes always finds room: with all connections they are 16 MiB. */
export const SMALL_BODY_BYTES = 64 * 1024;
/**
 * Requests to a manager that a team, or an address before it has authenticated, has under way: as many threads of a program
 * may claim at once, and what all of them ask for delays others by less than a second.
 */
export const REQUESTS_MAX = 256;
/**
 * How often a manager asks whether the tokens of the calls under way are still valid, in ms: with the time that a database
 * may take to answer, calls of a revoked one end within 5 s.
 */
export const RIGHTS_POLL_MS = 2_000;
/** What an operator prunes is at least so old, in ms: readers and transactions of now are past it. */
export const PRUNE_LEAST_MS = 24 * 60 * 60 * 1000;
/** How often a manager writes to its database to see whether that takes writes, in ms: `/readyz` is wrong no longer. */
export const WRITE_PROBE_MS = 5_000;
/** Bytes of answers that wait for clients which take nothing of them; then such connections are cut. */
export const UNREAD_MAX_BYTES = 16 * MIB;
/** Deepest nesting of objects and arrays in a payload, itself counted: deeper ones overflow the stacks of parsers. */
export const PAYLOAD_MAX_DEPTH = 100;
/** Time for a request's headers, in ms: a slow client must not hold a connection. */
export const HEADERS_TIMEOUT_MS = 5 * SECOND_MS;
/** Time for a whole request, in ms. */
export const REQUEST_TIMEOUT_MS = 15 * SECOND_MS;
/** Open connections of the daemon; then the one that has gone longest without a complete request is closed. */
export const CONNECTIONS_MAX = 256;
/** Entries of a page where the request asks for no number. */
export const LIST_LIMIT = 100;
/** Most entries of a page: bounds the memory of one answer. */
export const LIST_LIMIT_MAX = 1_000;
/** How long a pause waits for pending records to be delivered, in ms: most are, and a dead receiver delays it little. */
export const PAUSE_FLUSH_MS = 2 * SECOND_MS;
/** How long `POST /webhook/test` waits for its attempt, in ms: the time of one whole attempt. */
export const WEBHOOK_TEST_WAIT_MS = 15 * SECOND_MS;

// File operations. Contract section 4, "Files".

/** Most entries of a page of a list, and their number where none is asked for. */
export const FILE_LIST_LIMIT = 10_000;
/** Deepest directories that are made in one request, copied or packed, in levels: names in them still fit into paths. */
export const FILE_DEPTH_MAX = 400;
/** Entries of an unpacked archive: a tree of this size is a disk's image, which nobody waits for. */
export const ARCHIVE_ENTRIES_MAX = 4_000_000;
/** Symbolic links of an unpacked archive, and directories with odd modes: they are looked at again at its end. */
export const ARCHIVE_LINKS_MAX = 200_000;
/** Links on the way of one link, as many as the kernel follows. */
export const LINKS_FOLLOWED_MAX = 40;
/** Uploads, downloads and archives at a time: bounds their memory and descriptors. */
export const FILE_TRANSFERS_MAX = 64;
/** Other file operations at a time: each may hang in a file system, and has a thread of its own for it. */
export const FILE_CALLS_MAX = 128;
/** How long a file operation may make no progress, in ms: a disk at work takes seconds, a server that is away never ends. */
export const FILE_CALL_TIMEOUT_MS = 30 * SECOND_MS;
/** The same once bytes are on their way to the disk, in ms: a slow disk takes minutes to sync gigabytes. */
export const FILE_SYNC_TIMEOUT_MS = 5 * MINUTE_MS;
/** Directories that clients watch at a time: each costs a thread, and a watch for each directory in it. */
export const FILE_WATCHED_TREES_MAX = 16;
/** Subscriptions of one connection. */
export const FILE_SUBSCRIPTIONS_MAX = 256;
/** How long a client may let a transfer wait without taking or sending a byte, in ms. */
export const FILE_IDLE_TIMEOUT_MS = MINUTE_MS;

// What a node holds. Contract section 7, "Node capacity".

/** The smallest lease of memory, and of disk, in MiB: a daemon needs a third of that memory, and its outbox has to have room. */
export const SANDBOX_SIZE_MIN_MIB = 128;
/**
 * The least that a paused sandbox counts for on its node's memory, in MiB, and can take: its daemon (45), and a process that
 * serves its files, which grows above that before memory runs out, so that the kernel ends it and not the daemon.
 */
export const PAUSED_MEMORY_MIB = 128;

// The manager's time. Contract section 7, "Time".

/** A machine whose clock differs by more from the database's time is told, in ms: certificates and people notice from there on. */
export const CLOCK_OFF_MS = SECOND_MS;
/** How fast a time that is kept goes towards the wall clock, as a fraction: what `adjtime` does, so that no duration breaks. */
export const CLOCK_SLEW = 0.000_5;
/** How much slower a replica's time runs, as a fraction, until a database whose clock went back has caught up: it still goes on. */
export const CLOCK_BACK_PACE = 0.5;

// Connection tracking on a node. Contract section 7, "Network".

/**
 * Flows that one sandbox may have open: connections, and exchanges of datagrams that the node still knows. For each new
 * one the kernel looks at all of them, some 0.2 µs each, so a larger bound would let a flood take a core.
 */
export const FLOWS_SANDBOX_MAX = 1_024;
/** New flows of one sandbox, a second; at once as many as it may have open. A program that needs one a request stays below. */
export const FLOWS_SANDBOX_RATE = 250;
/** A team's share of the node's disk and of its memory for paused sandboxes, in percent: as of connections and flows. */
export const TEAM_SHARE_PERCENT = 25;
/** New flows of all sandboxes of a team on a node, a second: they cost the node a tenth of a core at most. */
export const FLOWS_TEAM_RATE = 500;
/** New flows of all sandboxes of a team on a node at once. */
export const FLOWS_TEAM_BURST = 4_096;
/** New flows of a team, a second, that are served whatever all other teams begin. */
export const FLOWS_TEAM_CALM_RATE = 50;
/** New flows of a team at once that are served whatever all other teams begin. */
export const FLOWS_TEAM_CALM_BURST = 256;
/** The part of the node's table that sandboxes may take; the rest stays with the node's own connections. */
export const FLOWS_TABLE_SHARE = 1 / 2;
/** The part of the sandboxes' half that one team may take: what is left serves a team that comes later. */
export const FLOWS_TEAM_SHARE = 1 / 2;
/** How full the sandboxes' half is, as a part of it, when each team is held to an equal part. */
export const FLOWS_TIGHT_SHARE = 3 / 4;
/** New flows of all sandboxes in a second, as a part of the node's table: between two looks they cannot fill it. */
export const FLOWS_NODE_RATE_SHARE = 1 / 32;
/** New flows of all sandboxes at once, as a part of the node's table. */
export const FLOWS_NODE_BURST_SHARE = 1 / 16;
/** Time between two looks at the node's table, in ms. */
export const FLOWS_LOOK_MS = SECOND_MS;
/** Idle time after which the node forgets a TCP connection, in ms: 2 h 5 min, a little over what RFC 5382 asks for. */
export const FLOW_IDLE_MS = 125 * MINUTE_MS;
/** Time after which the node forgets a look-up of a name, in ms: resolvers wait no longer for an answer. */
export const DNS_FLOW_MS = 5 * SECOND_MS;

/**
 * Bytes that a packet takes of a turn at least, where packets wait for the same tokens: a verdict costs the node as much as
 * some hundred bytes do, so that a flood of the smallest packets takes no more of it than others.
 */
export const PACKET_TURN_BYTES = 256;

// Quotas. Contract section 7.

/**
 * The least rate of a team's transfers, in bytes per second: the longest event passes well within one attempt, and a body that
 * is read whole within the time of a request, also where webhooks and all else take turns.
 */
export const TRANSFER_RATE_MIN_BYTES = MIB;

/** Time for an answer of the rate authority, in ms; then it counts as unreachable. It is part of every request. */
export const RATE_TIMEOUT_MS = 100;

/** The bound on a sandbox's disk, in MiB, where neither its claim nor the size of the node's disk sets another. */
export const DISK_DEFAULT_MIB = 10 * 1024;

/** The path by which agents publish: known before the routes are loaded. */
export const PUBLISH_PATH = '/api/v1/webhook/publish';
