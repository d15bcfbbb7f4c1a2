import { Worker } from 'node:worker_threads';
import { type Clock, runTime } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { WatcherStatus } from '../../contract/sandboxes.ts';
import type { TreeRow, TreeStore } from '../index/tree-store.ts';
import type { FromWatchThread, ThreadSettings, ToWatchThread } from './thread-messages.ts';

/** How long `stop` waits for a thread that hangs in the file system. */
const STOP_MS = 2_000;

/** Options of a watcher. */
export interface WatcherOptions extends ThreadSettings {
  clock: Clock;
  log: Log;
  store: TreeStore;
}

/** Reports of a thread handle. */
export interface ThreadHooks {
  /** The engine has started. */
  onStarted: () => void;
  /** The status changed. */
  onStatus: (status: WatcherStatus) => void;
  /** The thread has ended, by a failure or by `stop`. */
  onFailure: (error: Error) => void;
}

/** One watch thread, from its start to its end, as the main thread uses it. */
export class ThreadHandle {
  readonly #options: WatcherOptions;
  readonly #hooks: ThreadHooks;
  readonly #worker: Worker;
  readonly #reconciling = new Map<number, () => void>();
  #pages: AsyncIterator<TreeRow[]> | null = null;
  #onStopped: () => void = () => {};
  #ended = false;
  #last_id = 0;

  constructor(options: WatcherOptions, hooks: ThreadHooks) {
    this.#options = options;
    this.#hooks = hooks;
    const { watch_dir, ignore, own_paths } = options;
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'cjs';
    this.#worker = new Worker(new URL(`./watch-thread.${extension}`, import.meta.url), {
      workerData: { watch_dir, ignore, own_paths } satisfies ThreadSettings,
      // The watch takes no settings from the environment, but chokidar would.
      env: {},
      resourceLimits: { maxYoungGenerationSizeMb: 8 },
    });
    this.#worker.on('message', (message: FromWatchThread) => this.#receive(message));
    this.#worker.on('error', (error) => this.#end(error));
    this.#worker.on('exit', (code) => this.#end(new Error(`the watch thread exited with code ${code}`)));
  }

  /** Rescans the whole tree; resolves when the differences are committed, cannot be, or the thread has ended. */
  reconcile(reason: string): Promise<void> {
    if (this.#ended) return Promise.resolve();
    const id = ++this.#last_id;
    return new Promise((resolve) => {
      this.#reconciling.set(id, resolve);
      this.#post({ kind: 'reconcile', id, reason });
    });
  }

  /** Stops the engine, waits at most `STOP_MS` for it, and terminates the thread. */
  async stop(): Promise<void> {
    if (this.#ended) return;
    const stopped = new Promise<void>((resolve) => {
      this.#onStopped = resolve;
    });
    this.#post({ kind: 'stop' });
    const timer = runTime(this.#options.clock).after(STOP_MS, () => this.#onStopped());
    await stopped;
    timer.cancel();
    // Not awaited: a thread that hangs in the file system ends with the process.
    void this.#worker.terminate();
    this.#end(new Error('stopped'));
  }

  #post(message: ToWatchThread): void {
    this.#worker.postMessage(message);
  }

  #receive(message: FromWatchThread): void {
    const { store, log } = this.#options;
    switch (message.kind) {
      case 'load':
        this.#load().catch((error) => this.#fault(error));
        break;
      case 'commit':
        this.#hooks.onStatus(message.status);
        store
          .commit(message.batch)
          .then((answer) => this.#post({ kind: 'answer', answer }))
          .catch((error) => this.#fault(error));
        break;
      case 'started':
        this.#hooks.onStarted();
        break;
      case 'status':
        this.#hooks.onStatus(message.status);
        break;
      case 'reconciled':
        this.#reconciled(message.id);
        break;
      case 'log':
        log[message.method](message.fields, message.message);
        break;
      case 'stopped':
        this.#onStopped();
        break;
    }
  }

  async #load(): Promise<void> {
    this.#pages ??= this.#options.store.load()[Symbol.asyncIterator]();
    const { done, value } = await this.#pages.next();
    this.#post({ kind: 'page', rows: done ? null : value });
  }

  #reconciled(id: number): void {
    this.#reconciling.get(id)?.();
    this.#reconciling.delete(id);
  }

  /** The store threw: the thread's tree and the stored tree may differ now. */
  #fault(error: unknown): void {
    void this.#worker.terminate();
    this.#end(error instanceof Error ? error : new Error(String(error)));
  }

  #end(error: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#onStopped();
    for (const done of this.#reconciling.values()) done();
    this.#reconciling.clear();
    this.#hooks.onFailure(error);
  }
}
