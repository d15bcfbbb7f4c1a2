import type { Timer } from '../../base/clock.ts';
import type { Service } from '../../base/service.ts';
import type { WatcherStatus } from '../../contract/sandboxes.ts';
import { initialStatus } from '../status.ts';
import { ThreadHandle } from './thread-handle.ts';
import type { WatcherOptions } from './watcher-options.ts';

export type { WatcherStatus } from '../../contract/sandboxes.ts';
export { checkWatchDir } from '../watch-dir.ts';

/** How long a thread that failed stays away. */
const RESTART_MS = 1_000;

/**
 * Watches a directory tree in a thread of its own and commits what happens in it. A thread that fails is started
 * anew: what was missed meanwhile is found by comparison. Source: contract section 6.
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
   * Returns when the watches are set and the tree is compared with the last known one, or `watch_dir` is waited for.
   * @throws what kept the thread from starting
   */
  async start(): Promise<void> {
    await this.#open();
  }

  /** Compares the whole tree with the last known one; returns when the differences are committed, or cannot be. */
  async reconcile(reason: string): Promise<void> {
    await this.#thread?.reconcile(reason);
  }

  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#restart?.cancel();
    await this.#thread?.stop();
  }

  /** As of the last commit, or of when the watch last came to rest. */
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
    this.#failure = `the watch failed and starts anew: ${error.message}`;
    this.#options.log.error({ err: error }, 'the watch failed');
    // A failure to start again comes back here by itself.
    this.#restart = this.#options.clock.after(RESTART_MS, () => void this.#open().catch(() => {}));
  }
}
