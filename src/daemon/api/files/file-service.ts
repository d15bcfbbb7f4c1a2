import type { Clock } from '../../../base/clock.ts';
import type { HttpExchange } from '../../../base/http/app.ts';
import type { Account } from '../../../base/linux/accounts.ts';
import type { Log } from '../../../base/log.ts';
import type { Service } from '../../../base/service.ts';
import { FILE_CALLS_MAX, FILE_IDLE_TIMEOUT_MS, FILE_TRANSFERS_MAX } from '../../../contract/defaults.ts';
import { invalidField } from '../../../contract/errors.ts';
import { type DaemonConfig, ownPaths } from '../../config.ts';
import { AccountLookup } from './account-lookup.ts';
import { AccountProcesses } from './account-processes.ts';
import type { FileRoute } from './file-routes.ts';
import { forwardToAccount } from './forward.ts';
import { Places } from './places.ts';

/** What a file service is made with. */
export interface FileServiceParts {
  clock: Clock;
  log: Log;
  /** Where it keeps its own files, in the state directory. */
  folder: string;
  /** How long an idle client may hold a transfer, in ms. */
  idle_timeout_ms?: number;
  config: Pick<DaemonConfig, 'state_dir' | 'control_token_file' | 'control_socket' | 'process_user'>;
}

/**
 * The daemon's file operations, each in a process of the account that it acts as: the kernel decides what the account may
 * do, and a file system that hangs holds up no thread of the daemon. Source: contract section 4, "Files".
 */
export class FileService implements Pick<Service, 'stop'> {
  readonly #parts: FileServiceParts;
  readonly #own_paths: string[];
  readonly #places = {
    call: new Places(FILE_CALLS_MAX, 'file operations'),
    transfer: new Places(FILE_TRANSFERS_MAX, 'transfers'),
  };
  readonly #lookup: AccountLookup;
  readonly #accounts = new Map<number | null, AccountProcesses>();

  constructor(parts: FileServiceParts) {
    this.#parts = parts;
    this.#own_paths = ownPaths(parts.config);
    this.#lookup = new AccountLookup(parts.clock);
  }

  /** Answers a request. Throws what refuses it before there is an answer. */
  async answer(route: FileRoute, exchange: HttpExchange): Promise<void> {
    const { user } = exchange.request.query as { user?: string };
    const processes = await this.#processesOf(user);
    if (route.kind !== 'lasting')
      this.#places[route.kind].take(exchange, route.kind === 'call' ? this.#left() : 0);
    const { clock, idle_timeout_ms = FILE_IDLE_TIMEOUT_MS } = this.#parts;
    await forwardToAccount(processes, route, exchange, { clock, idle_timeout_ms });
  }

  /** Removes what uploads of an earlier daemon have left. */
  removeLeftovers(): Promise<void> {
    return this.#of(null).removeLeftovers();
  }

  /** Ends all processes. Idempotent. */
  async stop(): Promise<void> {
    await Promise.all([...this.#accounts.values()].map((each) => each.stop()));
  }

  /**
   * Those that act as this account; without `user`, as that of `--process-user`. Throws `invalid_request` (user) for one
   * that does not exist.
   */
  async #processesOf(user: string | undefined): Promise<AccountProcesses> {
    const name = user ?? this.#parts.config.process_user;
    if (name === null) return this.#of(null);
    const account = await this.#lookup.find(name);
    if (!account) throw invalidField('user', `there is no user ${JSON.stringify(name)}`);
    return this.#of(account.uid === process.geteuid?.() ? null : account);
  }

  #left(): number {
    return [...this.#accounts.values()].reduce((sum, { left }) => sum + left, 0);
  }

  #of(account: Account | null): AccountProcesses {
    const key = account?.uid ?? null;
    const known = this.#accounts.get(key);
    if (known?.isFor(account)) return known;
    void known?.stop();
    const { clock, log, folder } = this.#parts;
    const made = new AccountProcesses({ clock, log, account, folder, own_paths: this.#own_paths });
    this.#accounts.set(key, made);
    return made;
  }
}
