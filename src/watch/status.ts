import type { WatcherStatus } from '../contract/sandboxes.ts';

/** Also known to whoever shows it. */
export type { WatcherStatus } from '../contract/sandboxes.ts';

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
