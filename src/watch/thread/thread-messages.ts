import type { WatcherStatus } from '../../contract/sandboxes.ts';
import type { CommitAnswer, TreeBatch, TreeRow } from '../index/tree-store.ts';

/** What the watch thread is started with. */
export interface ThreadSettings {
  /** Absolute. */
  watch_dir: string;
  /** Globs of `--watch-ignore`. */
  ignore: string[];
  /** The daemon's own directories and files: never watched, never told. */
  own_paths: string[];
}

export type LogMethod = 'debug' | 'info' | 'warn';

/** From the daemon to its watch thread. */
export type ToWatchThread =
  /** The next page of stored rows; null after the last. */
  | { kind: 'page'; rows: TreeRow[] | null }
  | { kind: 'answer'; answer: CommitAnswer }
  | { kind: 'reconcile'; id: number; reason: string }
  | { kind: 'stop' };

/** From the watch thread to the daemon. */
export type FromWatchThread =
  | { kind: 'load' }
  | { kind: 'commit'; batch: TreeBatch; status: WatcherStatus }
  | { kind: 'started' }
  | { kind: 'reconciled'; id: number }
  | { kind: 'status'; status: WatcherStatus }
  | { kind: 'log'; method: LogMethod; fields: object; message: string }
  | { kind: 'stopped' };
