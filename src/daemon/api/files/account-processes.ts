import { chown } from 'node:fs/promises';
import type { Clock, Timer } from '../../../base/clock.ts';
import { makeFolder } from '../../../base/folder.ts';
import type { Account } from '../../../base/linux/accounts.ts';
import type { Log } from '../../../base/log.ts';
import { ApiError } from '../../../contract/errors.ts';
import { AccountProcess, type AccountUse } from './account-process.ts';

/** How long a process without requests is kept, in ms: starting one takes longer than most operations. */
const KEEP_MS = 60_000;
/** Processes of an account whose threads hang. Each holds its memory until the kernel lets go of it. */
const HANGING_MAX = 4;

/** What the processes of an account are made with. */
export interface AccountProcessesParts {
  clock: Clock;
  log: Log;
  /** Null: the daemon's own. */
  account: Account | null;
  /** The folder of sockets and journals, which only the daemon can enter. */
  folder: string;
  own_paths: readonly string[];
}

/**
 * The processes with the rights of one account: one for new requests, started by the first of them and ended after the
 * last, and those whose threads hang, which are killed once what moves on in them is done.
 */
export class AccountProcesses {
  readonly #parts: AccountProcessesParts;
  /** All that have not ended. */
  readonly #processes = new Set<AccountProcess>();
  #next = 0;
  #made: Promise<string> | null = null;
  #idle: Timer | null = null;
  #is_stopped = false;
  #has_leftovers = false;

  constructor(parts: AccountProcessesParts) {
    this.#parts = parts;
  }

  /** Whether they act as this very account. */
  isFor(other: Account | null): boolean {
    const { account } = this.#parts;
    return account?.name === other?.name && account?.uid === other?.uid && account?.gid === other?.gid;
  }

  /**
   * A process for one request, after which `done` must be called. Throws `permission_denied` if this daemon may not act as
   * the account, and `unavailable` if no process can be started or too many hang.
   */
  async use(): Promise<AccountUse> {
    this.#idle?.cancel();
    const journal_folder = await this.#folders();
    for (const each of this.#processes) this.#tidy(each);
    const known = [...this.#processes].find(({ is_retired }) => !is_retired);
    const use = await (known ?? this.#start(journal_folder)).use();
    if (this.#is_stopped) {
      use.done();
      throw new ApiError('shutting_down');
    }
    return use;
  }

  /** How many calls they still work on for clients that have gone. */
  get left(): number {
    return [...this.#processes].reduce((sum, { left }) => sum + left, 0);
  }

  /** Removes what an earlier daemon has left, with the rights of this account. */
  async removeLeftovers(): Promise<void> {
    this.#has_leftovers = true;
    (await this.use()).done();
  }

  /** Ends them, with what they are doing. Idempotent. */
  async stop(): Promise<void> {
    this.#is_stopped = true;
    this.#idle?.cancel();
    await Promise.all([...this.#processes].map((each) => each.stop()));
  }

  #start(journal_folder: string): AccountProcess {
    if (this.#is_stopped) throw new ApiError('shutting_down');
    if (this.#processes.size >= HANGING_MAX + 1) throw hanging();
    const { account, folder, own_paths, clock, log } = this.#parts;
    const socket_name = `${account?.uid ?? 'own'}-${this.#next++}.sock`;
    const leftovers = this.#has_leftovers ? folder : null;
    this.#has_leftovers = false;
    const settings = {
      account,
      own_paths,
      journal_folder,
      socket_name,
      daemon_pid: process.pid,
      leftovers,
    };
    const made = new AccountProcess({ clock, folder, socket_name, settings });
    this.#processes.add(made);
    made.onEnded = () => this.#processes.delete(made);
    made.onDone = () => {
      this.#tidy(made);
      if (![...this.#processes].some((each) => each.is_busy)) this.#endLater();
    };
    made.onLost = () => {
      log.warn(
        { account: account?.name ?? null },
        'a process for file operations did not answer and was killed',
      );
    };
    return made;
  }

  /** Kills one that takes no new requests, once nothing moves on in it. */
  #tidy(each: AccountProcess): void {
    if (each.is_retired && !each.is_busy) each.kill();
  }

  #endLater(): void {
    this.#idle?.cancel();
    this.#idle = this.#parts.clock.after(KEEP_MS, () => {
      for (const each of this.#processes) if (each.uses === 0) void each.stop();
    });
  }

  #folders(): Promise<string> {
    this.#made ??= this.#makeFolders();
    this.#made.catch(() => {
      this.#made = null;
    });
    return this.#made;
  }

  async #makeFolders(): Promise<string> {
    const { account, folder } = this.#parts;
    const journal_folder = `${folder}/uploads${account ? `-${account.uid}` : ''}`;
    await makeFolder(folder);
    await makeFolder(journal_folder);
    // What it lacks, it reports by itself.
    if (account) await chown(journal_folder, account.uid, account.gid).catch(() => {});
    return journal_folder;
  }
}

function hanging(): ApiError {
  return new ApiError('unavailable', 'Too many file operations hang in file systems that do not answer.', {
    retry_after_s: 10,
  });
}
