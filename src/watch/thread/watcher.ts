import { type Stats, statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import type { Timer } from '../../base/clock.ts';
import type { Service } from '../../base/service.ts';
import { ApiError } from '../../contract/errors.ts';
import type { WatcherStatus } from '../../contract/sandboxes.ts';
import { pathBelow, realPath } from '../ignore.ts';
import { initialStatus } from '../status.ts';
import { ThreadHandle, type WatcherOptions } from './thread-handle.ts';

/** Time from a failure of the thread until it is restarted. */
const RESTART_MS = 1_000;

/**
 * Watches a directory tree in a thread of its own and commits the events of its changes. A thread that fails is
 * restarted after `RESTART_MS`; the scan at its start finds what was missed. Source: contract section 6.
 */
export class Watcher implements Service {
  readonly #options: WatcherOptions;
  #status: WatcherStatus;
  #thread: ThreadHandle | null = null;
  #restart: Timer | null = null;
  #failure: string | null = null;
  #stopped = false;

  constructor(options: WatcherOptions) {
    this.#options = options;
    this.#status = initialStatus(options.watch_dir);
  }

  /**
   * Resolves when the watches are set and the differences from the last known tree are committed, or earlier if
   * `watch_dir` does not exist or the outbox is full.
   * @throws Error if the thread could not start
   */
  async start(): Promise<void> {
    await this.#open();
  }

  /** Rescans the whole tree; resolves when the differences are committed, or when the outbox accepts nothing. */
  async reconcile(reason: string): Promise<void> {
    await this.#thread?.reconcile(reason);
  }

  /** Stops the watch; idempotent. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#restart?.cancel();
    await this.#thread?.stop();
  }

  /** The status at the last commit, or when the watch last came to rest. Source: contract section 6. */
  status(): WatcherStatus {
    if (this.#stopped) return { ...this.#status, state: 'stopped' };
    return { ...this.#status, degraded: this.#failure ?? this.#status.degraded };
  }

  #open(): Promise<void> {
    return new Promise((resolve, reject) => {
      let started = false;
      this.#thread = new ThreadHandle(this.#options, {
        onStarted: () => {
          started = true;
          this.#failure = null;
          resolve();
        },
        onStatus: (status) => {
          this.#status = status;
        },
        onFailure: (error) => {
          if (this.#stopped) resolve();
          if (!started) reject(error);
          if (started || this.#failure !== null) this.#fail(error);
        },
      });
    });
  }

  #fail(error: Error): void {
    if (this.#stopped) return;
    this.#failure = `the directory watch failed and is being restarted: ${error.message}`;
    this.#options.log.error({ err: error }, 'the directory watch failed and is being restarted');
    // A failed restart calls `#fail` again through `onFailure`.
    this.#restart = this.#options.clock.after(RESTART_MS, () => void this.#open().catch(() => {}));
  }
}

/**
 * Checks a `watch_dir`: it must be an absolute path, and neither a file nor inside one of the daemon's own paths. A
 * directory that does not exist is accepted; the watch waits for it.
 * @throws ApiError `invalid_request`, with `field: 'watch_dir'`
 */
export function checkWatchDir(watch_dir: string, own_paths: string[]): void {
  const refuse = (reason: string): never => {
    throw new ApiError('invalid_request', `watch_dir ${JSON.stringify(watch_dir)} ${reason}`, {
      field: 'watch_dir',
    });
  };
  if (!isAbsolute(watch_dir)) refuse('must be an absolute path');
  if (watch_dir.includes('\0')) refuse('must not contain NUL');
  const stats = statsOf(watch_dir);
  if (stats && !stats.isDirectory()) refuse('must be a directory');
  const real = realPath(watch_dir);
  const inside = own_paths.find((path) => pathBelow(realPath(path), real) !== null);
  if (inside !== undefined) refuse(`must not be inside the daemon's own ${JSON.stringify(inside)}`);
}

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
