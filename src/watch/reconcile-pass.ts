import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock, Timer } from '../base/clock.ts';
import { classify } from './classify/classify.ts';
import type { FileEvent } from './classify/events.ts';
import type { Vanished } from './classify/vanished.ts';
import type { DirectoryScanner } from './directory-scanner.ts';
import {
  BLOCKED_RETRY_MS,
  BURST_EVENTS,
  EVENTS_MAX,
  KERNEL_TICK_MS,
  NAMES_PER_DIRECTORY_MAX,
  OBSERVATIONS_MAX,
  PORTION_MIN,
  ROWS_MAX,
  YIELD_MAX_MS,
} from './index/limits.ts';
import { rowOf } from './index/stored-tree.ts';
import type { Tree } from './index/tree.ts';
import { directories, type TreeNode } from './index/tree-node.ts';
import type { CommitAnswer, TreeStore } from './index/tree-store.ts';
import type { PassResult } from './loop.ts';
import type { Classified, Observation } from './observation.ts';
import type { ProbeRoundResult, Prober } from './prober.ts';
import type { RemoteMounts } from './remote-mounts.ts';
import type { OverflowGuess } from './signals/overflow.ts';
import type { PendingNames } from './signals/pending-names.ts';
import type { RootWatch } from './signals/root-watch.ts';
import type { WatchSet } from './signals/watch-set.ts';
import type { SilentWrites } from './silent-writes.ts';

interface ReconcilePassOptions {
  tree: Tree;
  pending: PendingNames;
  vanished: Vanished;
  prober: Prober;
  scanner: DirectoryScanner;
  silent: SilentWrites;
  watch_set: WatchSet;
  mounts: RemoteMounts;
  root: RootWatch;
  store: TreeStore;
  clock: Clock;
  overflow: OverflowGuess;
}

/**
 * One pass of the watch: queued directories are scanned, due names are observed and classified, events and tree are
 * committed, and then the watches are adapted. A pass that could not be committed is rolled back and its names are
 * queued again.
 *
 * | State | Meaning | Left when |
 * |---|---|---|
 * | baseline | the first index is being built: rows are stored, nothing is reported | `completeBaseline` was called and the root is committed |
 * | reporting | events and rows are committed together | never |
 */
export class ReconcilePass {
  readonly #options: ReconcilePassOptions;
  /** While the first index is built nothing is reported: what exists is the baseline. */
  #baseline: boolean;
  #baseline_complete = false;
  /** The share of a whole pass that is taken at once: below 1 while the outbox lacks room for a whole one. */
  #portion = 1;
  /** Number of events committed so far. */
  events = 0;

  constructor(options: ReconcilePassOptions, baseline: boolean) {
    this.#options = options;
    this.#baseline = baseline;
    options.scanner.adopting = baseline;
  }

  /** Whether the first index is still being built. */
  get baseline(): boolean {
    return this.#baseline;
  }

  /** To be called when the first index is complete: the next pass stores the root, which marks it as complete. */
  completeBaseline(): void {
    this.#baseline_complete = true;
  }

  /** Whether no scan is outstanding: only then can removed files be distinguished from moved ones. */
  get is_scanned(): boolean {
    return this.#options.scanner.size === 0 && !this.#options.overflow.suspected;
  }

  /** Runs one pass. */
  async step(): Promise<PassResult> {
    const { tree, pending, scanner, silent, prober, root, clock } = this.#options;
    const readable = root.check();
    if (readable) scanner.run();
    silent.run(readable && !this.#baseline);
    const names = pending.take(this.#part(OBSERVATIONS_MAX));
    const expired = readable ? this.#expired() : new Set<never>();
    if (this.#baseline_complete) tree.markChanged(tree.root);
    if (names.length === 0 && expired.size === 0 && tree.unstored === 0) {
      if (silent.is_comparing) await nextTurn();
      return scanner.size > 0 || silent.is_comparing ? 'more' : 'idle';
    }
    const racy_after_ms = clock.wallMs() - KERNEL_TICK_MS;
    const taken = prober.observe(names, expired);
    const classified = classify(tree, {
      observations: taken.observations,
      displaced: taken.displaced,
      expired,
      events_max: this.#part(EVENTS_MAX),
      racy_after_ms,
    });
    const began_ms = clock.monotonicMs();
    const answer = await this.#commit(classified);
    const committed = answer === 'committed';
    const commit_ms = clock.monotonicMs() - began_ms;
    this.#requeue(taken, classified, committed);
    if (committed) this.#adaptWatches(taken.observations, classified);
    for (const observation of [...taken.observations, ...taken.raced, ...taken.postponed]) {
      // Otherwise each name would keep all those signalled before it in memory.
      observation.from = null;
      observation.first_from = null;
      observation.followers = null;
    }
    if (classified.events.length >= BURST_EVENTS && commit_ms >= 1) await this.#yieldToPublishers(commit_ms);
    else await nextTurn();
    return this.#next(answer, classified.events.length);
  }

  #part(whole: number): number {
    return Math.max(1, Math.floor(whole * this.#portion));
  }

  /** If the outbox is full, halves the portion until one fits or a single event is refused. */
  #next(answer: CommitAnswer, events: number): PassResult {
    if (answer === 'committed') {
      this.#portion = Math.min(1, this.#portion * 2);
      return 'more';
    }
    if (answer === 'unavailable' || events <= 1 || this.#portion <= PORTION_MIN) return 'blocked';
    this.#portion /= 2;
    return 'more';
  }

  /** In a burst, leaves the outbox to publishers for a moment: they wait for an answer. */
  #yieldToPublishers(commit_ms: number): Promise<void> {
    const delay_ms = Math.min(commit_ms, YIELD_MAX_MS);
    return new Promise((resolve) => {
      this.#options.clock.after(delay_ms, resolve);
    });
  }

  #expired(): ReturnType<Vanished['expired']> {
    const { vanished, pending, prober, clock, tree } = this.#options;
    if (vanished.size === 0 || !this.is_scanned) return new Set();
    const now_ms = clock.monotonicMs();
    return vanished.expired(
      tree,
      now_ms,
      pending.oldestGeneration(),
      this.#part(OBSERVATIONS_MAX),
      prober.places(),
    );
  }

  async #commit(classified: Classified): Promise<CommitAnswer> {
    const { tree } = this.#options;
    const { put, drop } = tree.changes();
    const events = this.#baseline ? [] : classified.events;
    const answer = this.#baseline ? await this.#storeRows(put, drop) : await this.#store(events, put, drop);
    if (answer !== 'committed') {
      tree.rollback();
      this.#forget(put);
      return answer;
    }
    tree.commit();
    this.events += events.length;
    if (this.#baseline_complete) this.#endBaseline();
    return answer;
  }

  /** Drops new directories that could not be stored; a rescan finds them again. */
  #forget(nodes: TreeNode[]): void {
    const { tree, watch_set, scanner } = this.#options;
    const unknown = nodes.filter((node) => !node.known);
    if (unknown.length > 0) scanner.add(tree.root, true);
    for (const node of unknown) {
      watch_set.drop(node);
      scanner.forget(node);
    }
  }

  async #store(events: FileEvent[], put: TreeNode[], drop: number[]): Promise<CommitAnswer> {
    if (events.length === 0 && put.length === 0 && drop.length === 0) return 'committed';
    const answer = this.#options.store.commit({ events, put: put.map(rowOf), drop });
    return this.#awaitCommit(answer);
  }

  /** Waits for a commit. While the disk hangs, pending names are collapsed so that they do not fill the memory. */
  async #awaitCommit(answer: Promise<CommitAnswer>): Promise<CommitAnswer> {
    const { clock } = this.#options;
    let timer: Timer;
    const collapseLater = () => {
      timer = clock.after(BLOCKED_RETRY_MS, () => {
        this.#collapse();
        collapseLater();
      });
    };
    collapseLater();
    return answer.finally(() => timer.cancel());
  }

  /** Drops the names of directories that have too many, and scans these directories instead. */
  #collapse(): void {
    const { pending, scanner } = this.#options;
    for (const dir of pending.collapse(NAMES_PER_DIRECTORY_MAX)) scanner.add(dir, false);
  }

  /** Stores rows in several commits: an incomplete index is rebuilt at the next start, so no common transaction is required. */
  async #storeRows(put: TreeNode[], drop: number[]): Promise<CommitAnswer> {
    for (let i = 0; i < Math.max(put.length, drop.length); i += ROWS_MAX) {
      const answer = await this.#store([], put.slice(i, i + ROWS_MAX), drop.slice(i, i + ROWS_MAX));
      if (answer !== 'committed') return answer;
    }
    return 'committed';
  }

  /**
   * Adapts the watches, and what is to be observed and scanned, to a committed pass. Closes watches first, because a path
   * may belong to another directory now.
   */
  #adaptWatches(observations: Observation[], classified: Classified): void {
    const { tree, watch_set, pending, scanner } = this.#options;
    for (const dir of classified.gone) {
      watch_set.drop(dir);
      pending.forget(dir);
      scanner.forget(dir);
    }
    const moved = classified.moved.flatMap((dir) => [...directories(dir)]);
    for (const dir of moved) watch_set.drop(dir);
    for (const dir of [...moved, ...classified.appeared]) if (dir.known) watch_set.add(dir);
    for (const node of classified.also_changed) if (node.parent) pending.add(node.parent, node.name);
    for (const observation of observations) {
      const node = tree.child(observation.dir, observation.name);
      if (!node?.is_directory || !watch_set.has(node)) continue;
      if (observation.changed && watch_set.isUnreadable(node)) watch_set.renew(node);
      // Another directory may have been in its place for a while.
      else if (observation.renames > 0) scanner.add(node, true);
    }
  }

  #endBaseline(): void {
    this.#baseline = false;
    this.#baseline_complete = false;
    this.#options.scanner.adopting = false;
  }

  #requeue(taken: ProbeRoundResult, classified: Classified, committed: boolean): void {
    const { pending, vanished, clock, mounts } = this.#options;
    const put = (observations: Observation[], when: 'now' | 'gathered' | 'vanished') => {
      for (const observation of observations) {
        const { dir, stat } = observation;
        const takes = when === 'now' || mounts.takes(stat?.dev ?? dir.dev, true);
        if (dir.known && takes) pending.requeue(observation, when);
      }
    };
    put(taken.postponed, 'vanished');
    put(taken.raced, 'gathered');
    if (committed) {
      put(classified.waiting, 'vanished');
      put(classified.raced, 'gathered');
    } else {
      put(taken.observations, 'now');
      this.#collapse();
    }
    const now_ms = clock.monotonicMs();
    for (const node of classified.missing) vanished.add(node, now_ms, pending.last_generation);
  }
}
