import { type ChildProcess, spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { chown } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Clock, Timer } from '../../../base/clock.ts';
import { NODE_FLAGS } from '../../../base/engine/flags.ts';
import { makeFolder } from '../../../base/folder.ts';
import type { Account } from '../../../base/linux/accounts.ts';
import type { Log } from '../../../base/log.ts';
import { ApiError } from '../../../contract/errors.ts';

/** How long a process without requests is kept, in ms: starting one takes longer than most operations. */
const KEEP_MS = 60_000;
/** The longest line that a process may write about a start that failed. */
const REASON_MAX_LENGTH = 200;

/** What an account's process is started with, as JSON. */
export interface AccountSettings {
  account: Account;
  own_paths: readonly string[];
  /** The account's own, in a folder that it cannot enter by itself. */
  journal_folder: string;
}

/** What an account's process is made with. */
export interface AccountProcessParts {
  clock: Clock;
  log: Log;
  account: Account;
  /** The folder of its socket and journal, which only the daemon can enter. */
  folder: string;
  own_paths: readonly string[];
}

/**
 * A process with the rights of one account, which answers the same file routes on a socket. It begins with the daemon's
 * rights, opens its socket where the account cannot, and then gives them up for good. Started by the first request and
 * ended after the last.
 */
export class AccountProcess {
  readonly #parts: AccountProcessParts;
  #started: Promise<ChildProcess> | null = null;
  #users = 0;
  #idle: Timer | null = null;

  constructor(parts: AccountProcessParts) {
    this.#parts = parts;
  }

  /** Whether it acts as this very account. */
  isFor({ name, uid, gid }: Account): boolean {
    const { account } = this.#parts;
    return account.name === name && account.uid === uid && account.gid === gid;
  }

  /**
   * The path of its socket, for one request, after which `done` must be called. Throws `permission_denied` where this
   * daemon may not act as the account.
   */
  async use(): Promise<{ socket: string; done: () => void }> {
    this.#users += 1;
    this.#idle?.cancel();
    let is_done = false;
    const done = () => {
      if (!is_done) this.#release();
      is_done = true;
    };
    try {
      await this.#start();
    } catch (error) {
      done();
      throw error;
    }
    return { socket: this.#socket, done };
  }

  /** Ends it, with what it is doing. Idempotent. */
  async stop(): Promise<void> {
    this.#idle?.cancel();
    const child = await this.#started?.catch(() => null);
    // It ends with its stdin, as it would with this process.
    child?.stdin?.end();
    this.#started = null;
  }

  get #socket(): string {
    return `${this.#parts.folder}/${this.#parts.account.uid}.sock`;
  }

  #release(): void {
    this.#users -= 1;
    if (this.#users > 0) return;
    this.#idle = this.#parts.clock.after(KEEP_MS, () => void this.stop());
  }

  #start(): Promise<ChildProcess> {
    this.#started ??= this.#spawn().catch((error) => {
      this.#started = null;
      throw error;
    });
    return this.#started;
  }

  async #spawn(): Promise<ChildProcess> {
    const { account, folder, own_paths, log } = this.#parts;
    await makeFolder(folder);
    rmSync(this.#socket, { force: true });
    const journal_folder = `${folder}/uploads-${account.uid}`;
    await makeFolder(journal_folder);
    await chown(journal_folder, account.uid, account.gid).catch(() => {}); // it then says itself what it lacks
    const settings: AccountSettings = { account, own_paths, journal_folder };
    const child = spawn(process.execPath, [...NODE_FLAGS, programPath(), JSON.stringify(settings)], {
      env: {},
      cwd: folder,
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    child.stdin.on('error', () => {});
    child.once('exit', () => {
      this.#started = null;
    });
    const answer = await firstLine(child);
    if (answer === 'ready') return child;
    child.stdin.end();
    log.warn({ account: account.name, reason: answer }, 'file operations cannot act as this account');
    throw new ApiError('permission_denied', `The daemon may not act as the user ${account.name}.`, {
      field: 'user',
    });
  }
}

/** In a bundle, the program lies beside it. */
function programPath(): string {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'cjs';
  return fileURLToPath(new URL(`./account-program.${extension}`, import.meta.url));
}

/** What it writes first: `ready`, or why it cannot be; the reason of its end otherwise. */
function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    child.once('error', ({ message }) => resolve(message));
    child.once('close', (code, signal) => resolve(text.trim() || `it ended with ${code ?? signal}`));
    child.stdout?.setEncoding('utf8').on('data', (data: string) => {
      text = (text + data).slice(0, REASON_MAX_LENGTH);
      if (text.includes('\n')) resolve(text.split('\n', 1)[0] as string);
    });
  });
}
