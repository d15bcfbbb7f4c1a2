import type { Clock } from '../base/clock.ts';
import type { Disk } from './disk.ts';
import type { TreeStore } from './index/tree-store.ts';
import type { DirectoryWatches } from './signals/directory-watch.ts';

/** As much of a log as the watch needs, so that it can be a message to another thread. */
export type WatchLog = Record<'debug' | 'info' | 'warn', (fields: object, message: string) => void>;

export interface EngineOptions {
  watch_dir: string;
  ignore: string[];
  own_paths: string[];
  clock: Clock;
  log: WatchLog;
  store: TreeStore;
  /** Called whenever nothing is left to do at once. */
  onRest?: () => void;
  /** For tests: another file system, what sets one watch on it, and the length of the kernel's queue. */
  disk?: Disk;
  watches?: DirectoryWatches;
  queue_length?: number;
}
