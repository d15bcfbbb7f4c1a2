import type { WatcherStatus } from '../contract/sandbox.ts';

/** The status of a watch that has not started yet. */
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
