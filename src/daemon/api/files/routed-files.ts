import type { Clock } from '../../../base/clock.ts';
import type { Files } from '../../../files/files.ts';
import type { FileThreads } from '../../../files/thread/file-threads.ts';
import type { AccountProcess } from './account-process.ts';
import type { Transfers } from './transfers.ts';
import type { WatchedTrees } from './watch/watched-trees.ts';

/** What file routes work with. */
export interface RoutedFiles {
  readonly clock: Clock;
  readonly transfers: Transfers;
  /** Operations with the rights of this process. */
  readonly own: Files;
  /** Lists and archives with the rights of this process. */
  readonly threads: FileThreads;
  /** What clients watch. */
  readonly trees: WatchedTrees;
  /** The process that acts as an account; null where this one does. */
  processOf(user: string | undefined): Promise<AccountProcess | null>;
}
