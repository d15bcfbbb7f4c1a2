import type { WatcherStatus } from '../../contract/sandbox.ts';
import type { CommitAnswer, TreeBatch, TreeRow } from '../index/tree-store.ts';

/** The settings with which the watch thread is started. */
export interface ThreadSettings {
  /** The absolute path of the directory to watch. */
  watch_dir: string;
  /** The globs of `--watch-ignore`. */
  ignore: string[];
  /** The daemon's own files and directories, which are never watched. */
  own_paths: string[];
  /** What is done first: `watch_dir` is checked, and for `only` nothing else. */
  check: 'no' | 'first' | 'only';
}

/** A log level of the watch. */
export type LogMethod = 'debug' | 'info' | 'warn';

/** A message from the main thread to the watch thread. `id` pairs `reconcile` with `reconciled`. */
export type ToWatchThread =
  /** The next page of stored rows; null after the last one. */
  | { kind: 'page'; rows: TreeRow[] | null }
  | { kind: 'answer'; answer: CommitAnswer }
  | { kind: 'reconcile'; id: number; reason: string }
  | { kind: 'stop' };

/** A message from the watch thread to the main thread. `load` asks for a `page`, `commit` for an `answer`. */
export type FromWatchThread =
  | { kind: 'load' }
  | { kind: 'commit'; batch: TreeBatch; status: WatcherStatus }
  /** Why `watch_dir` is refused; null if it is not. */
  | { kind: 'checked'; problem: string | null }
  | { kind: 'started' }
  | { kind: 'reconciled'; id: number }
  | { kind: 'status'; status: WatcherStatus }
  | { kind: 'log'; method: LogMethod; fields: object; message: string }
  | { kind: 'stopped' };
