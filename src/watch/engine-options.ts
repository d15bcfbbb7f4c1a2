import type { Clock } from '../base/clock.ts';
import type { Disk } from './disk.ts';
import type { TreeStore } from './index/tree-store.ts';
import type { RemoteLimits } from './remote-mounts.ts';
import type { DirectoryWatches } from './signals/directory-watch.ts';

/** The part of a log that the watch needs, small enough to cross a thread boundary as messages. */
export type WatchLog = Record<'debug' | 'info' | 'warn', (fields: object, message: string) => void>;

/** What an engine is made with. */
export interface EngineOptions {
  /** The absolute path of the directory to watch. */
  watch_dir: string;
  /** The globs of `--watch-ignore`. */
  ignore: string[];
  /** The daemon's own files and directories, which are never watched. */
  own_paths: string[];
  clock: Clock;
  log: WatchLog;
  store: TreeStore;
  /** Called whenever no work is due at the moment. */
  onRest?: () => void;
  /** For tests: the file system, its limits, the watches on it, and the length of the kernel's queue in signals. */
  disk?: Disk;
  remote_limits?: RemoteLimits;
  watches?: DirectoryWatches;
  queue_length?: number;
}
