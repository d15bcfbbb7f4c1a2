import type { Clock } from '../base/clock.ts';
import type { Service } from '../base/service.ts';
import { Comparison } from './comparison.ts';
import { DirectoryCoverage } from './coverage.ts';
import { ChokidarWatches, type DirectoryWatches } from './directory-watch.ts';
import { type Disk, disk as localDisk } from './disk.ts';
import { compileIgnored } from './ignore.ts';
import { DirectoryLister } from './lister.ts';
import { Looker } from './looker.ts';
import { Loop, type StepResult } from './loop.ts';
import { OverflowGuess } from './overflow.ts';
import { RootWatch } from './root-watch.ts';
import { initialStatus, type WatcherStatus } from './status.ts';
import { loadTree } from './stored-tree.ts';
import { type Signal, TouchedNames } from './touched-names.ts';
import type { Tree, TreeNode } from './tree.ts';
import type { TreeStore } from './tree-store.ts';
import { Turns } from './turn.ts';
import { Vanished } from './vanished.ts';

/** As much of a log as the watch needs, so that it can be a message to another thread. */
export type WatchLog = Record<'debug' | 'info' | 'warn', (fields: object, message: string) => void>;

export interface EngineOptions {
  watch_dir: string;
  ignore: string[];
  own_paths: string[];
  clock: Clock;
  log: WatchLog;
  store: TreeStore;
  /** Called whenever nothing is left to do at once. */
  onRest?: () => void;
  /** For tests: another file system, what sets one watch on it, and the length of the kernel's queue. */
  disk?: Disk;
  watches?: DirectoryWatches;
  queue_length?: number;
}

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

  #release(result: StepResult): void {
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

interface EngineHooks {
  onRest: (result: StepResult) => void;
  count: (reason: string) => void;
  onOverflow: () => void;
}

/** The parts of a running engine, wired up. */
class EngineParts {
  readonly tree: Tree;
  readonly touched: TouchedNames;
  readonly vanished = new Vanished();
  readonly coverage: DirectoryCoverage;
  readonly lister: DirectoryLister;
  readonly comparison: Comparison;
  readonly root: RootWatch;
  readonly turns: Turns;
  readonly #loop: Loop;
  readonly #overflow: OverflowGuess;
  #kicked = false;

  constructor(options: EngineOptions, tree: Tree, first_time: boolean, hooks: EngineHooks) {
    const { clock, log, store, disk = localDisk } = options;
    this.tree = tree;
    this.touched = new TouchedNames(clock);
    const looker = new Looker(tree, this.touched, clock, disk);
    this.coverage = new DirectoryCoverage({
      watches: options.watches ?? new ChokidarWatches(),
      pathOf: (dir) => tree.path(dir),
      onSignal: (dir, signal, name, own) => this.#signal(dir, signal, name, own),
      onReady: (dir) => this.#ready(dir),
      onGone: (dir) => this.#missed(dir),
    });
    const ignored = compileIgnored(options.watch_dir, options.ignore, options.own_paths);
    const shared = { tree, touched: this.touched, looker, coverage: this.coverage, clock };
    this.lister = new DirectoryLister({ ...shared, ignored, disk });
    this.comparison = new Comparison({
      clock,
      coverage: this.coverage,
      lister: this.lister,
      compare: () => this.#compare(hooks),
    });
    this.root = new RootWatch({
      ...shared,
      vanished: this.vanished,
      disk,
      log,
      onReplaced: () => hooks.count('root_replaced'),
    });
    this.#overflow = new OverflowGuess(clock, hooks.onOverflow, options.queue_length);
    this.turns = new Turns(
      {
        ...shared,
        vanished: this.vanished,
        lister: this.lister,
        root: this.root,
        overflow: this.#overflow,
        store,
      },
      first_time,
    );
    this.#loop = new Loop({
      clock,
      step: () => this.#step(),
      nextDueMs: () => this.#nextDueMs(clock),
      onRest: (result) => {
        this.comparison.update();
        hooks.onRest(result);
      },
    });
  }

  /** Has a turn taken now. */
  kick(): void {
    this.#kicked = true;
    this.#loop.schedule();
  }

  async stop(): Promise<void> {
    this.comparison.stop();
    await this.#loop.stop();
    await this.coverage.stop();
  }

  /** Whether all is settled that was pending when listings were last through. */
  isSettled(waiter: Waiter): boolean {
    if (!this.turns.settled || this.#kicked) return false;
    waiter.after_ticket ??= this.touched.last_ticket;
    return (
      this.touched.oldestTicket() > waiter.after_ticket && this.vanished.firstAfter() > waiter.after_ticket
    );
  }

  #step(): Promise<StepResult> {
    this.#kicked = false;
    return this.turns.step();
  }

  #nextDueMs(clock: Clock): number | null {
    if (this.#kicked || this.lister.size > 0) return clock.monotonicMs();
    const due = [this.touched.nextDueMs(), this.root.nextDueMs()];
    // What vanished is looked at when nothing else is left to look at: until then there is another reason to wake.
    const can_expire = this.turns.settled && this.vanished.firstAfter() < this.touched.oldestTicket();
    if (can_expire) due.push(this.vanished.nextDueMs());
    const known = due.filter((at) => at !== null);
    return known.length > 0 ? Math.min(...known) : null;
  }

  #signal(dir: TreeNode, signal: Signal, name: string | null, own: boolean): void {
    this.#overflow.signal();
    if (!dir.known) return;
    // A name that is not UTF-8 comes damaged: only a listing has its bytes.
    if (name === null || name.includes('\ufffd')) this.lister.add(dir, false);
    else if (!this.lister.isIgnored(dir, name)) this.touched.signal(dir, name, signal, own);
    this.#loop.schedule();
  }

  #ready(dir: TreeNode): void {
    this.lister.add(dir, false);
    this.#loop.schedule();
  }

  /** A directory was not at its path when it was to be watched. */
  #missed(dir: TreeNode): void {
    if (dir.parent) this.touched.touch(dir.parent, dir.name);
    this.kick();
  }

  /** Lists what no watch covers; the directories without a watch are listed when it was tried again. */
  #compare(hooks: EngineHooks): void {
    hooks.count('uncovered');
    this.coverage.retry();
    for (const dir of this.lister.remote.keys()) this.lister.add(dir, true);
    this.kick();
  }
}
