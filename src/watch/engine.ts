import type { Service } from '../base/service.ts';
import type { WatcherStatus } from '../contract/sandboxes.ts';
import type { EngineOptions } from './engine-options.ts';
import { EngineParts } from './engine-parts.ts';
import { loadTree } from './index/stored-tree.ts';
import type { PassResult } from './loop.ts';
import { initialStatus } from './status.ts';

/** A caller that waits until everything pending is committed, or until the outbox accepts nothing more. */
interface Waiter {
  /** The generation to wait for; null until the directories are scanned. */
  after_generation: number | null;
  done: (result: 'reconciled' | 'blocked') => void;
}

/**
 * Watches one directory tree. Signals and scans make names pending, pending names are observed, observations are
 * classified into events and changes of the tree, and both are committed together. Passes run one at a time; what
 * happens during a pass is left to the next one. Source: contract section 6.
 *
 * | State | Meaning | Left when |
 * |---|---|---|
 * | `starting` | the first index is being built; nothing is reported | its root is committed: `watching` |
 * | `watching` | changes are reported | `watch_dir` disappears: `waiting`; `stop`: `stopped` |
 * | `waiting` | there is no `watch_dir`, or it is not accepted | one appears: `watching` or `starting`; `stop`: `stopped` |
 * | `stopped` | nothing is observed or committed any more | never |
 */
export class Engine implements Service {
  readonly #options: EngineOptions;
  readonly #status: WatcherStatus;
  #parts: EngineParts | null = null;
  #waiters: Waiter[] = [];
  #stopped = false;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#status = initialStatus(options.watch_dir);
  }

  /**
   * Resolves when the watches are set and the differences from the last known tree are committed; or earlier, if
   * `watch_dir` does not exist, or if the outbox is full: the rest then follows as soon as it has room.
   */
  async start(): Promise<void> {
    const { watch_dir, store, log } = this.#options;
    const { tree, first_time, stale } = await loadTree(watch_dir, store.load());
    for (const id of stale) tree.discard(id);
    if (this.#stopped) return;
    const parts = new EngineParts(this.#options, tree, first_time, {
      onRest: (result) => {
        this.#release(result);
        this.#options.onRest?.();
      },
      onReconcile: (reason) => this.#count(reason),
      onOverflow: () => void this.reconcile('overflow'),
    });
    this.#parts = parts;
    this.#count('start');
    log.debug({ watch_dir, first_time, index_size: tree.size }, 'starting to watch');
    parts.kick();
    const result = await this.#untilReconciled();
    if (!first_time) return;
    const complete = this.#completeBaseline(parts, result);
    if (result === 'reconciled') await complete;
  }

  /** Rescans the whole tree; resolves when the differences are committed, or when the outbox accepts nothing. */
  async reconcile(reason: string): Promise<void> {
    const parts = this.#parts;
    if (this.#stopped || !parts) return;
    this.#count(reason);
    parts.scanner.add(parts.tree.root, true);
    parts.kick();
    await this.#untilReconciled();
  }

  /** Stops watching; resolves when the pass in progress has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#parts?.stop();
    for (const waiter of this.#waiters.splice(0)) waiter.done('blocked');
  }

  /** The current status. Source: contract section 6. */
  status(): WatcherStatus {
    const status = { ...this.#status, reconciles: { ...this.#status.reconciles } };
    if (this.#stopped) return { ...status, state: 'stopped' };
    const parts = this.#parts;
    if (!parts) return status;
    const state = parts.pass.baseline ? 'starting' : 'watching';
    return {
      ...status,
      state: parts.root.waiting ? 'waiting' : state,
      directories_watched: parts.watch_set.watched,
      directories_compared: parts.watch_set.refused,
      directories_unreadable: parts.scanner.hidden.size,
      index_size: parts.tree.size - 1,
      queued: parts.pending.size + parts.vanished.size + parts.scanner.size,
      events: parts.pass.events,
      degraded: parts.rescan.degraded(),
    };
  }

  /** Commits the root once the first index is complete, which marks it as complete. */
  async #completeBaseline(parts: EngineParts, first: 'reconciled' | 'blocked'): Promise<void> {
    let result = first;
    while (result === 'blocked' && !this.#stopped) result = await this.#untilReconciled();
    parts.pass.baseline_complete = true;
    parts.kick();
    while (parts.pass.baseline && !this.#stopped) await this.#untilReconciled();
  }

  #count(reason: string): void {
    this.#status.reconciles[reason] = (this.#status.reconciles[reason] ?? 0) + 1;
  }

  /** Resolves when everything that is pending now is committed. */
  #untilReconciled(): Promise<'reconciled' | 'blocked'> {
    return new Promise((done) => this.#waiters.push({ after_generation: null, done }));
  }

  #release(result: PassResult): void {
    const parts = this.#parts;
    if (!parts) return;
    this.#waiters = this.#waiters.filter((waiter) => {
      if (result === 'blocked') waiter.done('blocked');
      else if (!parts.isReconciled(waiter)) return true;
      else waiter.done('reconciled');
      return false;
    });
  }
}
