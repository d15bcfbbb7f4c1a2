import type { Service } from '../base/service.ts';
import type { WatcherStatus } from '../contract/sandboxes.ts';
import type { EngineOptions } from './engine-options.ts';
import { EngineParts } from './engine-parts.ts';
import { loadTree } from './index/stored-tree.ts';
import type { PassResult } from './loop.ts';
import { initialStatus } from './status.ts';

/** Someone who waits until all that was pending is settled, or until the outbox takes nothing more. */
interface Waiter {
  after_ticket: number | null;
  done: (result: 'settled' | 'blocked') => void;
}

/**
 * The watch of one directory tree: signals and listings touch names, touched names are looked at, looks are settled
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
    const result = await this.#settled();
    if (!first_time) return;
    const complete = this.#completeBaseline(parts, result);
    if (result === 'settled') await complete;
  }

  /** Compares the whole tree with the disk; returns when the differences are committed, or cannot be at present. */
  async reconcile(reason: string): Promise<void> {
    const parts = this.#parts;
    if (this.#stopped || !parts) return;
    this.#count(reason);
    parts.lister.add(parts.tree.root, true);
    parts.kick();
    await this.#settled();
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
    const state = parts.turns.baseline ? 'starting' : 'watching';
    return {
      ...status,
      state: parts.root.waiting ? 'waiting' : state,
      directories_watched: parts.coverage.watched,
      directories_compared: parts.coverage.refused,
      directories_unreadable: parts.lister.hidden.size,
      index_size: parts.tree.size - 1,
      queued: parts.touched.size + parts.vanished.size + parts.lister.size,
      events: parts.turns.events,
      degraded: parts.comparison.degraded(),
    };
  }

  /** Stores that the first index is complete, once it is. */
  async #completeBaseline(parts: EngineParts, first: 'settled' | 'blocked'): Promise<void> {
    let result = first;
    while (result === 'blocked' && !this.#stopped) result = await this.#settled();
    parts.turns.baseline_complete = true;
    parts.kick();
    while (parts.turns.baseline && !this.#stopped) await this.#settled();
  }

  #count(reason: string): void {
    this.#status.reconciles[reason] = (this.#status.reconciles[reason] ?? 0) + 1;
  }

  /** Resolves when nothing is pending that came before. */
  #settled(): Promise<'settled' | 'blocked'> {
    return new Promise((done) => this.#waiters.push({ after_ticket: null, done }));
  }

  #release(result: PassResult): void {
    const parts = this.#parts;
    if (!parts) return;
    this.#waiters = this.#waiters.filter((waiter) => {
      if (result === 'blocked') waiter.done('blocked');
      else if (!parts.isSettled(waiter)) return true;
      else waiter.done('settled');
      return false;
    });
  }
}
