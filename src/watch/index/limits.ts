/** Every time and size limit of the watch, with its unit and its reason. */

/** How long signals are gathered after the first one, so that related changes are observed together. */
export const GATHER_MS = 15;
/** Writes to one file within this time are one event. Source: contract section 6. */
export const WRITE_GATHER_MS = 50;
/** How long a vanished file may take to reappear under another name before it counts as removed. */
export const VANISH_MS = 60;
/** Time before the next attempt after the outbox was full or unavailable. */
export const BLOCKED_RETRY_MS = 1_000;
/** How often the watch looks for a watch_dir that does not exist. */
export const ABSENT_POLL_MS = 1_000;
/** The shortest time between two periodic rescans of what no watch covers. */
export const RESCAN_MIN_MS = 2_000;
/** Periodic rescans take at most 1 / 20 of the time. */
export const RESCAN_SHARE = 20;
/** Comparisons for writes without a signal take at most 1 / 50 of the time: a sandbox may signal without end. */
export const SILENT_SHARE = 50;
/** Files compared for that in one pass: about a millisecond, by which other events are late. */
export const COMPARED_AT_ONCE = 200;
/** Names known of one remote file system, and in one directory of it: each costs memory, and a hostile one has no end. */
export const REMOTE_NAMES_MAX = 100_000;
/** Differences of one remote file system in `REMOTE_ASIDE_MS` that no signal announced: a hostile one differs at each look. */
export const REMOTE_FOUND_MAX = 10_000;
/** How long a remote file system above its limits is left alone. */
export const REMOTE_ASIDE_MS = 600_000;
/** Names observed in one pass; each gives at most three events. Kept low so that a concurrent publish waits only briefly. */
export const OBSERVATIONS_MAX = 50;
/** Rows per commit while the first index is built. */
export const ROWS_MAX = 1_000;
/** Events per commit; the removal of a large directory is spread over several commits. */
export const EVENTS_MAX = 500;
/** Pending names and unstored rows above which no further directory is listed: long-lived garbage costs memory. */
export const LISTED_AHEAD_MAX = 1_000;
/** The smallest share of a whole pass that is tried when the outbox has little room: one event. */
export const PORTION_MIN = 1 / EVENTS_MAX;
/** Pending names of one directory above which it is listed instead, while the outbox accepts nothing. */
export const NAMES_PER_DIRECTORY_MAX = 5_000;
/** How often a name is observed again when the tree changes during the observation. */
export const RACES_MAX = 5;
/** A timestamp younger than this may hide a second write: the kernel's clock tick at 100 Hz. */
export const KERNEL_TICK_MS = 10;
/** From this number of events per commit, the watch yields to publishers for as long as the commit took. */
export const BURST_EVENTS = 25;
/** The longest time that the watch yields to publishers between two commits: the duration of one of their commits. */
export const YIELD_MAX_MS = 2;
