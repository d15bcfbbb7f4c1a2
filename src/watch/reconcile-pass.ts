import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock, Timer } from '../base/clock.ts';
import { settle } from './classify/classify.ts';
import type { FileEvent } from './classify/events.ts';
import type { Vanished } from './classify/vanished.ts';
import type { DirectoryScanner } from './directory-scanner.ts';
import {
  BLOCKED_RETRY_MS,
  CROWDED_EVENTS,
  EVENTS_MAX,
  LEFT_TO_OTHERS_MAX_MS,
  LOOKS_MAX,
  NAMES_PER_DIRECTORY_MAX,
  PORTION_MIN,
  ROWS_MAX,
  TICK_MS,
} from './index/limits.ts';
import { rowOf } from './index/stored-tree.ts';
import { directories, type Tree, type TreeNode } from './index/tree.ts';
import type { CommitAnswer, TreeStore } from './index/tree-store.ts';
import type { PassResult } from './loop.ts';
import type { Classified, Observation } from './observation.ts';
import type { ObservationsTaken, Prober } from './prober.ts';
import type { OverflowGuess } from './signals/overflow.ts';
import type { PendingNames } from './signals/pending-names.ts';
import type { RootWatch } from './signals/root-watch.ts';
import type { WatchSet } from './signals/watch-set.ts';

interface TurnOptions {
  tree: Tree;
  touched: PendingNames;
  vanished: Vanished;
  looker: Prober;
  lister: DirectoryScanner;
  coverage: WatchSet;
  root: RootWatch;
  store: TreeStore;
  clock: Clock;
  overflow: OverflowGuess;
}

/** One turn after the other: what is due is listed, looked at, settled and committed, and then acted on. */
export class ReconcilePass {
  readonly #options: TurnOptions;
  /** While the first index is made nothing is told: what exists is the baseline. */
  #baseline: boolean;
  /** Set when the first index is complete: the next turn stores the root, which says so. */
  baseline_complete = false;
  /** How much of a whole turn is taken at once: less where the outbox has no room for all that a turn gives. */
  #portion = 1;
  /** Events committed so far. */
  events = 0;

  constructor(options: TurnOptions, baseline: boolean) {
    this.#options = options;
    this.#baseline = baseline;
    options.lister.adopting = baseline;
  }

  get baseline(): boolean {
    return this.#baseline;
  }

  /** Whether what vanished can be told from what moved: nothing is left to be listed. */
  get settled(): boolean {
    return this.#options.lister.size === 0 && !this.#options.overflow.suspected;
  }

  async step(): Promise<PassResult> {
    const { tree, touched, lister, looker, root, clock } = this.#options;
    const readable = root.check();
    if (readable) lister.run();
    const names = touched.take(this.#part(LOOKS_MAX));
    const expired = readable ? this.#expired() : new Set<never>();
    if (this.baseline_complete) tree.touch(tree.root);
    if (names.length === 0 && expired.size === 0 && tree.pending === 0)
      return lister.size > 0 ? 'more' : 'idle';
    const racy_after_ms = clock.wallMs() - TICK_MS;
    const taken = looker.take(names, expired);
    const settled = settle(tree, {
      looks: taken.looks,
      displaced: taken.displaced,
      expired,
      events_max: this.#part(EVENTS_MAX),
      racy_after_ms,
    });
    const began_ms = clock.monotonicMs();
    const answer = await this.#commit(settled);
    const committed = answer === 'committed';
    const commit_ms = clock.monotonicMs() - began_ms;
    this.#requeue(taken, settled, committed);
    if (committed) this.#act(taken.looks, settled);
    for (const look of [...taken.looks, ...taken.raced, ...taken.postponed]) {
      // A name must not hold on to those signalled before it.
      look.from = null;
      look.first_from = null;
      look.followers = null;
    }
    if (settled.events.length >= CROWDED_EVENTS && commit_ms >= 1) await this.#leaveToOthers(commit_ms);
    else await nextTurn();
    return this.#next(answer, settled.events.length);
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
  #leaveToOthers(commit_ms: number): Promise<void> {
    const delay_ms = Math.min(commit_ms, LEFT_TO_OTHERS_MAX_MS);
    return new Promise((resolve) => {
      this.#options.clock.after(delay_ms, resolve);
    });
  }

  #expired(): ReturnType<Vanished['expired']> {
    const { vanished, touched, looker, clock, tree } = this.#options;
    if (vanished.size === 0 || !this.settled) return new Set();
    const now_ms = clock.monotonicMs();
    return vanished.expired(tree, now_ms, touched.oldestTicket(), this.#part(LOOKS_MAX), looker.places());
  }

  async #commit(settled: Classified): Promise<CommitAnswer> {
    const { tree } = this.#options;
    const { put, drop } = tree.changes();
    const events = this.#baseline ? [] : settled.events;
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
    const { tree, coverage, lister } = this.#options;
    const unknown = nodes.filter((node) => !node.known);
    if (unknown.length > 0) lister.add(tree.root, true);
    for (const node of unknown) {
      coverage.drop(node);
      lister.forget(node);
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
    const { touched, lister } = this.#options;
    for (const dir of touched.collapse(NAMES_PER_DIRECTORY_MAX)) lister.add(dir, false);
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
    this.#baseline = this.baseline_complete = this.#options.lister.adopting = false;
  }

  #requeue(taken: ObservationsTaken, settled: Classified, committed: boolean): void {
    const { touched, vanished, clock } = this.#options;
    const put = (looks: Observation[], when: 'now' | 'gathered' | 'vanished') => {
      for (const look of looks) if (look.dir.known) touched.again(look, when);
    };
    put(taken.postponed, 'vanished');
    put(taken.raced, 'gathered');
    if (committed) {
      put(settled.waiting, 'vanished');
      put(settled.raced, 'gathered');
    } else {
      put(taken.looks, 'now');
      this.#collapse();
    }
    const now_ms = clock.monotonicMs();
    for (const node of settled.missing) vanished.add(node, now_ms, touched.last_ticket);
  }

  /** Sets and closes watches as the tree changed. Closes first: a path may be another directory's now. */
  #act(looks: Observation[], settled: Classified): void {
    const { tree, coverage, touched, lister } = this.#options;
    for (const dir of settled.gone) {
      coverage.drop(dir);
      touched.forget(dir);
      lister.forget(dir);
    }
    const moved = settled.moved.flatMap((dir) => [...directories(dir)]);
    for (const dir of moved) coverage.drop(dir);
    for (const dir of [...moved, ...settled.appeared]) if (dir.known) coverage.want(dir);
    for (const node of settled.also_changed) if (node.parent) touched.touch(node.parent, node.name);
    for (const look of looks) {
      const node = tree.child(look.dir, look.name);
      if (!node?.is_directory || !coverage.has(node)) continue;
      if (look.changed && coverage.isUnreadable(node)) coverage.again(node);
      // It may have been away and another in its place.
      else if (look.renames > 0) lister.add(node, true);
    }
  }
}
