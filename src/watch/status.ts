/** The state of the watch, for `GET /sandbox`, `/metrics` and `/readyz`. */
export interface WatcherStatus {
  watch_dir: string;
  /** `waiting`: there is no such directory yet, or no more. */
  state: 'starting' | 'watching' | 'waiting' | 'stopped';
  directories_watched: number;
  /** Directories that are compared at intervals, because the kernel grants them no watch. */
  directories_compared: number;
  /** Directories that cannot be read. */
  directories_unreadable: number;
  /** Known files and directories. */
  index_size: number;
  /** Names that wait to be looked at or written. */
  queued: number;
  /** Events committed since the start. */
  events: number;
  /** Comparisons since the start, by reason: `start`, `resume`, `overflow`, `uncovered`, `root_replaced`. */
  reconciles: Record<string, number>;
  /** What is lost or only compared at intervals, in one sentence; null where nothing is. */
  degraded: string | null;
}

export function initialStatus(watch_dir: string): WatcherStatus {
  return {
    watch_dir,
    state: 'starting',
    directories_watched: 0,
    directories_compared: 0,
    directories_unreadable: 0,
    index_size: 0,
    queued: 0,
    events: 0,
    reconciles: {},
    degraded: null,
  };
}
