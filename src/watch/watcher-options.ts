import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { ThreadSettings } from './thread-messages.ts';
import type { TreeStore } from './tree-store.ts';

export interface WatcherOptions extends ThreadSettings {
  clock: Clock;
  log: Log;
  store: TreeStore;
}
