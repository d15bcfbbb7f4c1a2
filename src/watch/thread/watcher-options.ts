import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { TreeStore } from '../index/tree-store.ts';
import type { ThreadSettings } from './thread-messages.ts';

/** What a watcher is made with. */
export interface WatcherOptions extends ThreadSettings {
  clock: Clock;
  log: Log;
  store: TreeStore;
}
