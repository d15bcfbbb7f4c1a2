import type { Clock } from '../../../base/clock.ts';
import type { Files } from '../../../files/files.ts';
import type { AccountProcess } from './account-process.ts';
import type { Transfers } from './transfers.ts';

/** What file routes work with. */
export interface RoutedFiles {
  readonly clock: Clock;
  readonly transfers: Transfers;
  /** Operations with the rights of this process. */
  readonly own: Files;
  /** The process that acts as an account; null where this one does. */
  processOf(user: string | undefined): Promise<AccountProcess | null>;
}
