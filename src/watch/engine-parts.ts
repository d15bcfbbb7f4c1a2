import type { Clock } from '../base/clock.ts';
import { Vanished } from './classify/vanished.ts';
import { DirectoryScanner } from './directory-scanner.ts';
import { disk as localDisk } from './disk.ts';
import type { EngineOptions } from './engine-options.ts';
import { compileIgnored } from './ignore.ts';
import type { Tree, TreeNode } from './index/tree.ts';
import { Loop, type PassResult } from './loop.ts';
import { PeriodicRescan } from './periodic-rescan.ts';
import { Prober } from './prober.ts';
import { ReconcilePass } from './reconcile-pass.ts';
import { RootGate } from './root-gate.ts';
import { ChokidarWatches } from './signals/directory-watch.ts';
import { OverflowGuess } from './signals/overflow.ts';
import { PendingNames, type Signal } from './signals/pending-names.ts';
import { RootWatch } from './signals/root-watch.ts';
import { WatchSet } from './signals/watch-set.ts';

export interface EngineHooks {
  onRest: (result: PassResult) => void;
  count: (reason: string) => void;
  onOverflow: () => void;
}

/** The parts of a running engine, wired up. */
export class EngineParts {
  readonly tree: Tree;
  readonly touched: PendingNames;
  readonly vanished = new Vanished();
  readonly coverage: WatchSet;
  readonly lister: DirectoryScanner;
  readonly comparison: PeriodicRescan;
  readonly root: RootWatch;
  readonly turns: ReconcilePass;
  readonly #loop: Loop;
  readonly #overflow: OverflowGuess;
  #kicked = false;

  constructor(options: EngineOptions, tree: Tree, first_time: boolean, hooks: EngineHooks) {
    const { clock, log, store, disk = localDisk } = options;
    this.tree = tree;
    this.touched = new PendingNames(clock);
    const gate = new RootGate({ ...options, disk });
    const looker = new Prober(tree, this.touched, clock, disk, gate);
    this.coverage = new WatchSet({
      watches: options.watches ?? new ChokidarWatches(),
      pathOf: (dir) => tree.path(dir),
      onSignal: (dir, signal, name, own) => this.#signal(dir, signal, name, own),
      onReady: (dir) => this.#ready(dir),
      onGone: (dir) => this.#missed(dir),
    });
    const ignored = compileIgnored(options.watch_dir, options.ignore, options.own_paths);
    const shared = { tree, touched: this.touched, looker, coverage: this.coverage, clock };
    this.lister = new DirectoryScanner({ ...shared, ignored, disk });
    this.comparison = new PeriodicRescan({
      clock,
      coverage: this.coverage,
      lister: this.lister,
      tables: looker.tables,
      gate,
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
    this.turns = new ReconcilePass(
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
  isSettled(waiter: { after_ticket: number | null }): boolean {
    if (!this.turns.settled || this.#kicked) return false;
    waiter.after_ticket ??= this.touched.last_ticket;
    return (
      this.touched.oldestTicket() > waiter.after_ticket && this.vanished.firstAfter() > waiter.after_ticket
    );
  }

  #step(): Promise<PassResult> {
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
