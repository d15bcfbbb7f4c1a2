import { type Clock, runTime } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { WatcherStatus } from '../../contract/sandbox.ts';
import type { TreeRow, TreeStore } from '../index/tree-store.ts';
import type { FromWatchThread, ThreadSettings } from './thread-messages.ts';
import { type WatchChannel, watchInProcess, watchInThread } from './watch-channel.ts';

/** How long `stop` waits for a thread that hangs in the file system. */
const STOP_MS = 2_000;

/** Options of a watcher. */
export interface WatcherOptions extends Omit<ThreadSettings, 'check'> {
  /** Whether it runs in a process of its own instead of a thread. */
  is_apart?: boolean;
  clock: Clock;
  log: Log;
  store: TreeStore;
}

/** Reports of a thread handle. */
export interface ThreadHooks {
  /** Something came from it. */
  onSign: () => void;
  /** `watch_dir` was checked: why it is refused, or null. */
  onChecked: (problem: string | null) => void;
  /** The engine has started. */
  onStarted: () => void;
  /** The status changed. */
  onStatus: (status: WatcherStatus) => void;
  /** The thread has ended, by a failure or by `stop`. */
  onFailure: (error: Error) => void;
}

/** One watch thread or process, from its start to its end, as the main thread uses it. */
export class ThreadHandle {
  readonly #options: WatcherOptions;
  readonly #hooks: ThreadHooks;
  readonly #channel: WatchChannel;
  readonly #reconciling = new Map<number, () => void>();
  #pages: AsyncIterator<TreeRow[]> | null = null;
  #onStopped: () => void = () => {};
  #ended = false;
  #last_id = 0;

  constructor(options: WatcherOptions, check: ThreadSettings['check'], hooks: ThreadHooks) {
    this.#options = options;
    this.#hooks = hooks;
    const { watch_dir, ignore, own_paths, is_apart } = options;
    const start = is_apart ? watchInProcess : watchInThread;
    this.#channel = start(
      { watch_dir, ignore, own_paths, check },
      { onMessage: (message) => this.#receive(message), onEnd: (error) => this.#end(error) },
    );
  }

  /** Rescans the whole tree; resolves when the differences are committed, cannot be, or the thread has ended. */
  reconcile(reason: string): Promise<void> {
    if (this.#ended) return Promise.resolve();
    const id = ++this.#last_id;
    return new Promise((resolve) => {
      this.#reconciling.set(id, resolve);
      this.#channel.post({ kind: 'reconcile', id, reason });
    });
  }

  /** Stops the engine, waits at most `STOP_MS` for it, and terminates the thread. */
  async stop(): Promise<void> {
    if (this.#ended) return;
    const stopped = new Promise<void>((resolve) => {
      this.#onStopped = resolve;
    });
    this.#channel.post({ kind: 'stop' });
    const timer = runTime(this.#options.clock).after(STOP_MS, () => this.#onStopped());
    await stopped;
    timer.cancel();
    this.#channel.end();
    this.#end(new Error('stopped'));
  }

  #receive(message: FromWatchThread): void {
    const { store, log } = this.#options;
    if (this.#ended) return;
    this.#hooks.onSign();
    switch (message.kind) {
      case 'load':
        this.#load().catch((error) => this.#fault(error));
        break;
      case 'commit':
        this.#hooks.onStatus(message.status);
        store
          .commit(message.batch)
          .then((answer) => this.#channel.post({ kind: 'answer', answer }))
          .catch((error) => this.#fault(error));
        break;
      case 'checked':
        this.#hooks.onChecked(message.problem);
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
    this.#channel.post({ kind: 'page', rows: done ? null : value });
  }

  #reconciled(id: number): void {
    this.#reconciling.get(id)?.();
    this.#reconciling.delete(id);
  }

  /** The store threw: the thread's tree and the stored tree may differ now. */
  #fault(error: unknown): void {
    this.#channel.end();
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
