/** Every time and size of the watch, with its unit and the reason for it. */

/** How long signals are gathered after the first, so that what belongs together is looked at together. */
export const GATHER_MS = 15;
/** A burst of writes to one file within this time is one event. Source: contract section 6. */
export const WRITE_GATHER_MS = 50;
/** How long a vanished file may take to turn up under another name before it counts as removed. */
export const VANISH_MS = 60;
/** How long names wait that could not be written, because the outbox is full or cannot be written. */
export const BLOCKED_RETRY_MS = 1_000;
/** How often a watch_dir that does not exist is looked for. */
export const ABSENT_POLL_MS = 1_000;
/** The shortest time between two comparisons of what no watch covers. */
export const COMPARE_MIN_MS = 2_000;
/** A comparison takes at most this part of the time: 1 / 20. */
export const COMPARE_SHARE = 20;
/** Names looked at in one go; each gives at most three events. Few, so that a publish that comes meanwhile waits shortly. */
export const LOOKS_MAX = 50;
/** Rows of one commit while the first index is made. */
export const ROWS_MAX = 1_000;
/** Events of one commit; a removed directory's are spread over several. */
export const EVENTS_MAX = 500;
/** Names and rows waiting above which no further directory is listed: garbage that lives long costs memory. */
export const LISTED_AHEAD_MAX = 1_000;
/** The smallest part of these two that is tried where the outbox has less room: one event. */
export const PORTION_MIN = 1 / EVENTS_MAX;
/** Names waiting in one directory above which it is listed instead, when the outbox takes nothing. */
export const NAMES_PER_DIRECTORY_MAX = 5_000;
/** How often a name is looked at again when the tree changes under the look. */
export const RACES_MAX = 5;
/** Timestamps this young may hide a second write: the kernel's clock tick at 100 Hz. */
export const TICK_MS = 10;
/** Events in one commit from which on the outbox is left to others afterwards, for as long as the commit took. */
export const CROWDED_EVENTS = 25;
/** The longest that the outbox is left to others between two commits: as long as one of their commits takes. */
export const LEFT_TO_OTHERS_MAX_MS = 2;
