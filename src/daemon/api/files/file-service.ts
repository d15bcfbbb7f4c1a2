import { join } from 'node:path';
import type { Clock } from '../../../base/clock.ts';
import { type Account, findAccount } from '../../../base/linux/accounts.ts';
import type { Log } from '../../../base/log.ts';
import type { Service } from '../../../base/service.ts';
import { invalidField } from '../../../contract/errors.ts';
import { UploadJournal } from '../../../files/change/upload-journal.ts';
import { Files } from '../../../files/files.ts';
import { FileThreads } from '../../../files/thread/file-threads.ts';
import { type DaemonConfig, ownPaths } from '../../config.ts';
import { AccountProcess } from './account-process.ts';
import { Transfers } from './transfers.ts';
import { WatchedTrees } from './watch/watched-trees.ts';

/** What a file service is made with. */
export interface FileServiceParts {
  clock: Clock;
  log: Log;
  /** Where it keeps its own files, in the state directory. */
  folder: string;
  config: Pick<DaemonConfig, 'state_dir' | 'control_token_file' | 'control_socket' | 'process_user'>;
}

/** The part of a file service that its routes work with, here or in the process of an account. */
export type RoutedFiles = Pick<
  FileService,
  'clock' | 'transfers' | 'own' | 'threads' | 'trees' | 'processOf'
>;

/**
 * The daemon's file operations: its own account's in this process, any other's in a process of that account, so that the
 * kernel decides what the account may do. Source: contract section 4, "Files".
 */
export class FileService implements Pick<Service, 'stop'> {
  readonly clock: Clock;
  readonly transfers = new Transfers();
  /** Operations with the daemon's own rights. */
  readonly own: Files;
  /** Lists and archives with the daemon's own rights. */
  readonly threads: FileThreads;
  /** What clients watch with the daemon's own rights. */
  readonly trees: WatchedTrees;
  readonly #parts: FileServiceParts;
  readonly #own_paths: string[];
  readonly #journal: UploadJournal;
  readonly #processes = new Map<number, AccountProcess>();

  constructor(parts: FileServiceParts) {
    const { clock, config, folder } = parts;
    this.#parts = parts;
    this.clock = clock;
    this.#own_paths = ownPaths(config);
    this.#journal = new UploadJournal(join(folder, 'uploads'));
    this.trees = new WatchedTrees({ clock, log: parts.log, own_paths: this.#own_paths });
    const own = { clock, own_paths: this.#own_paths, journal: this.#journal };
    this.own = new Files(own);
    this.threads = new FileThreads(own);
  }

  /**
   * The process that acts as this account; null where that is the daemon's own. Without `user`, the account is that of
   * `--process-user`. Throws `invalid_request` (user) for one that does not exist.
   */
  async processOf(user: string | undefined): Promise<AccountProcess | null> {
    const name = user ?? this.#parts.config.process_user;
    if (name === null) return null;
    const account = await findAccount(name);
    if (!account) throw invalidField('user', `there is no user ${JSON.stringify(name)}`);
    return account.uid === process.geteuid?.() ? null : this.#process(account);
  }

  /** Ends the processes of accounts, and the threads. Idempotent. */
  async stop(): Promise<void> {
    await Promise.all([...this.#processes.values()].map((each) => each.stop()));
    await this.trees.stop();
    await this.threads.stop();
    await this.#journal.close();
  }

  #process(account: Account): AccountProcess {
    const known = this.#processes.get(account.uid);
    if (known?.isFor(account)) return known;
    void known?.stop();
    const { clock, log, folder } = this.#parts;
    const made = new AccountProcess({
      clock,
      log,
      account,
      folder,
      own_paths: this.#own_paths,
    });
    this.#processes.set(account.uid, made);
    return made;
  }
}
