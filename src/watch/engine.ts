import type { Service } from '../base/service.ts';
import type { WatcherStatus } from '../contract/sandboxes.ts';
import type { EngineOptions } from './engine-options.ts';
import { EngineParts } from './engine-parts.ts';
import { loadTree } from './index/stored-tree.ts';
import type { PassResult } from './loop.ts';
import { initialStatus } from './status.ts';

/** Someone who waits until all that was pending is classified, or until the outbox takes nothing more. */
interface Waiter {
  after_generation: number | null;
  done: (result: 'reconciled' | 'blocked') => void;
}

/**
 * The watch of one directory tree: signals and listings touch names, pending names are looked at, observations are classified
 * into events and changes of the tree, and both are committed together. One turn at a time; whatever comes meanwhile
 * is gathered. Source: contract section 6.
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
   * Returns when the watches are set and the tree is compared with the last known one, or `watch_dir` is waited for,
   * or the outbox takes no more: the rest is then done when there is room.
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
      count: (reason) => this.#count(reason),
      onOverflow: () => void this.reconcile('overflow'),
    });
    this.#parts = parts;
    this.#count('start');
    log.debug({ watch_dir, first_time, index_size: tree.size }, 'watch starts');
    parts.kick();
    const result = await this.#untilReconciled();
    if (!first_time) return;
    const complete = this.#completeBaseline(parts, result);
    if (result === 'reconciled') await complete;
  }

  /** Compares the whole tree with the disk; returns when the differences are committed, or cannot be at present. */
  async reconcile(reason: string): Promise<void> {
    const parts = this.#parts;
    if (this.#stopped || !parts) return;
    this.#count(reason);
    parts.scanner.add(parts.tree.root, true);
    parts.kick();
    await this.#untilReconciled();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#parts?.stop();
    for (const waiter of this.#waiters.splice(0)) waiter.done('blocked');
  }

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

  /** Stores that the first index is complete, once it is. */
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

  /** Resolves when nothing is pending that came before. */
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
