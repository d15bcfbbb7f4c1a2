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
import type { OverflowGuess } from './signals/overflow.ts';
import type { PendingNames } from './signals/pending-names.ts';
import type { RootWatch } from './signals/root-watch.ts';
import type { WatchSet } from './signals/watch-set.ts';

interface ReconcilePassOptions {
  tree: Tree;
  pending: PendingNames;
  vanished: Vanished;
  prober: Prober;
  scanner: DirectoryScanner;
  watch_set: WatchSet;
  root: RootWatch;
  store: TreeStore;
  clock: Clock;
  overflow: OverflowGuess;
}

/** One turn after the other: what is due is listed, looked at, classified and committed, and then acted on. */
export class ReconcilePass {
  readonly #options: ReconcilePassOptions;
  /** While the first index is made nothing is told: what exists is the baseline. */
  #baseline: boolean;
  /** Set when the first index is complete: the next turn stores the root, which says so. */
  baseline_complete = false;
  /** How much of a whole turn is taken at once: less where the outbox has no room for all that a turn gives. */
  #portion = 1;
  /** Events committed so far. */
  events = 0;

  constructor(options: ReconcilePassOptions, baseline: boolean) {
    this.#options = options;
    this.#baseline = baseline;
    options.scanner.adopting = baseline;
  }

  get baseline(): boolean {
    return this.#baseline;
  }

  /** Whether what vanished can be told from what moved: nothing is left to be listed. */
  get is_scanned(): boolean {
    return this.#options.scanner.size === 0 && !this.#options.overflow.suspected;
  }

  async step(): Promise<PassResult> {
    const { tree, pending, scanner, prober, root, clock } = this.#options;
    const readable = root.check();
    if (readable) scanner.run();
    const names = pending.take(this.#part(OBSERVATIONS_MAX));
    const expired = readable ? this.#expired() : new Set<never>();
    if (this.baseline_complete) tree.markChanged(tree.root);
    if (names.length === 0 && expired.size === 0 && tree.unstored === 0)
      return scanner.size > 0 ? 'more' : 'idle';
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
    if (committed) this.#act(taken.observations, classified);
    for (const observation of [...taken.observations, ...taken.raced, ...taken.postponed]) {
      // A name must not hold on to those signalled before it.
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

  /** What does not fit as a whole is offered in smaller portions, until one fits or nothing does. */
  #next(answer: CommitAnswer, events: number): PassResult {
    if (answer === 'committed') {
      this.#portion = Math.min(1, this.#portion * 2);
      return 'more';
    }
    if (answer === 'unavailable' || events <= 1 || this.#portion <= PORTION_MIN) return 'blocked';
    this.#portion /= 2;
    return 'more';
  }

  /** In a burst there are moments for those who publish: they wait for an answer. */
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
    if (this.baseline_complete) this.#endBaseline();
    return answer;
  }

  /** Lets go of directories that were watched before they were stored; they are found again. */
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

  /** Waits for a commit. On a disk that hangs that may take long: names that gather meanwhile must not fill the memory. */
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

  /** Forgets the names of directories that have too many: they are listed instead. */
  #collapse(): void {
    const { pending, scanner } = this.#options;
    for (const dir of pending.collapse(NAMES_PER_DIRECTORY_MAX)) scanner.add(dir, false);
  }

  /** Stores rows in parts: an index that is not complete is made anew, so they need no common transaction. */
  async #storeRows(put: TreeNode[], drop: number[]): Promise<CommitAnswer> {
    for (let i = 0; i < Math.max(put.length, drop.length); i += ROWS_MAX) {
      const answer = await this.#store([], put.slice(i, i + ROWS_MAX), drop.slice(i, i + ROWS_MAX));
      if (answer !== 'committed') return answer;
    }
    return 'committed';
  }

  #endBaseline(): void {
    this.#baseline = this.baseline_complete = this.#options.scanner.adopting = false;
  }

  #requeue(taken: ProbeRoundResult, classified: Classified, committed: boolean): void {
    const { pending, vanished, clock } = this.#options;
    const put = (observations: Observation[], when: 'now' | 'gathered' | 'vanished') => {
      for (const observation of observations) if (observation.dir.known) pending.requeue(observation, when);
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

  /** Sets and closes watches as the tree changed. Closes first: a path may be another directory's now. */
  #act(observations: Observation[], classified: Classified): void {
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
      // It may have been away and another in its place.
      else if (observation.renames > 0) scanner.add(node, true);
    }
  }
}
