import { runTime, type Timer } from '../../base/clock.ts';
import type { Service } from '../../base/service.ts';
import { ApiError } from '../../contract/errors.ts';
import type { WatcherStatus } from '../../contract/sandbox.ts';
import { initialStatus } from '../status.ts';
import { ThreadHandle, type WatcherOptions } from './thread-handle.ts';
import type { ThreadSettings } from './thread-messages.ts';

/** Time from a failure of the thread until it is restarted. */
const RESTART_MS = 1_000;

/** A watch that is silent for this long at its start hangs in the file system; then the start goes on without it. */
const SILENT_MS = 10_000;

/**
 * Watches a directory tree in a thread or process of its own and commits the events of its changes. A thread that fails is
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
   * `watch_dir` does not exist, its file system does not answer, or the outbox is full.
   * @throws ApiError `invalid_request`, with `field: 'watch_dir'`, if that is refused
   * @throws Error if the thread could not start
   */
  async start(): Promise<void> {
    await this.#open('first');
  }

  /** Checks `watch_dir` alone, and watches nothing. Throws as `start` does. */
  async check(): Promise<void> {
    await this.#open('only');
    await this.stop();
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

  #open(check: ThreadSettings['check']): Promise<void> {
    return new Promise((resolve, reject) => {
      let started = false;
      let silence: Timer | null = null;
      const listen = () => {
        silence?.cancel();
        if (started) return;
        silence = runTime(this.#options.clock).after(SILENT_MS, () => {
          started = true;
          this.#failure = 'the file system of watch_dir does not answer';
          this.#options.log.warn({}, this.#failure);
          resolve();
        });
      };
      listen();
      this.#thread = new ThreadHandle(this.#options, check, {
        onSign: listen,
        onChecked: (problem) => {
          if (problem !== null) reject(this.#refusal(problem));
          if (check !== 'only') return;
          silence?.cancel();
          resolve();
        },
        onStarted: () => {
          started = true;
          silence?.cancel();
          this.#failure = null;
          resolve();
        },
        onStatus: (status) => {
          this.#status = status;
        },
        onFailure: (error) => {
          silence?.cancel();
          if (this.#stopped) resolve();
          if (!started) reject(error);
          if (started || this.#failure !== null) this.#fail(error);
        },
      });
    });
  }

  #refusal(problem: string): ApiError {
    const { watch_dir } = this.#options;
    return new ApiError('invalid_request', `watch_dir ${JSON.stringify(watch_dir)} ${problem}`, {
      field: 'watch_dir',
    });
  }

  #fail(error: Error): void {
    if (this.#stopped) return;
    this.#failure = `the directory watch failed and is being restarted: ${error.message}`;
    this.#options.log.error({ err: error }, 'the directory watch failed and is being restarted');
    // A failed restart calls `#fail` again through `onFailure`.
    this.#restart = this.#options.clock.after(RESTART_MS, () => void this.#open('no').catch(() => {}));
  }
}
