import type { Clock } from '../base/clock.ts';
import { Vanished } from './classify/vanished.ts';
import { DirectoryScanner } from './directory-scanner.ts';
import { disk as localDisk } from './disk.ts';
import type { EngineOptions } from './engine-options.ts';
import { compileIgnored } from './ignore.ts';
import type { Tree } from './index/tree.ts';
import type { TreeNode } from './index/tree-node.ts';
import { Loop, type PassResult } from './loop.ts';
import { PeriodicRescan } from './periodic-rescan.ts';
import { Prober } from './prober.ts';
import { ReconcilePass } from './reconcile-pass.ts';
import { RemoteMounts } from './remote-mounts.ts';
import { RootGate } from './root-gate.ts';
import { ChokidarWatches } from './signals/directory-watch.ts';
import { OverflowGuess } from './signals/overflow.ts';
import { PendingNames, type Signal } from './signals/pending-names.ts';
import { RootWatch } from './signals/root-watch.ts';
import { WatchSet } from './signals/watch-set.ts';

/** What the parts of an engine report to it. */
export interface EngineHooks {
  /** No further work is due at the moment, or the outbox accepts nothing. */
  onRest: (result: PassResult) => void;
  /** A rescan was started, for this reason. */
  onReconcile: (reason: string) => void;
  /** The kernel's queue of signals has probably overflowed. */
  onOverflow: () => void;
}

/** Creates and connects the parts of a running engine. */
export class EngineParts {
  readonly tree: Tree;
  readonly pending: PendingNames;
  readonly vanished = new Vanished();
  readonly watch_set: WatchSet;
  readonly scanner: DirectoryScanner;
  readonly mounts: RemoteMounts;
  readonly rescan: PeriodicRescan;
  readonly root: RootWatch;
  readonly pass: ReconcilePass;
  readonly #loop: Loop;
  readonly #overflow: OverflowGuess;
  #kicked = false;

  constructor(options: EngineOptions, tree: Tree, first_time: boolean, hooks: EngineHooks) {
    const { clock, log, store, disk = localDisk } = options;
    this.tree = tree;
    this.pending = new PendingNames(clock);
    const gate = new RootGate({ ...options, disk });
    this.mounts = new RemoteMounts({ ...options, tree, disk });
    const prober = new Prober(tree, this.pending, clock, disk, gate, this.mounts);
    this.watch_set = new WatchSet({
      watches: options.watches ?? new ChokidarWatches(),
      pathOf: (dir) => tree.path(dir),
      onSignal: (dir, signal, name, own) => this.#signal(dir, signal, name, own),
      onReady: (dir) => this.#ready(dir),
      onGone: (dir) => this.#missed(dir),
    });
    const ignored = compileIgnored(options.watch_dir, options.ignore, options.own_paths);
    const shared = {
      tree,
      pending: this.pending,
      prober,
      watch_set: this.watch_set,
      mounts: this.mounts,
      clock,
    };
    this.scanner = new DirectoryScanner({ ...shared, ignored, disk });
    this.rescan = new PeriodicRescan({
      clock,
      watch_set: this.watch_set,
      scanner: this.scanner,
      mounts: this.mounts,
      pseudo: prober.pseudo,
      gate,
      onDue: () => this.#rescan(hooks),
    });
    this.root = new RootWatch({
      ...shared,
      vanished: this.vanished,
      disk,
      log,
      onReplaced: () => hooks.onReconcile('root_replaced'),
    });
    this.#overflow = new OverflowGuess(clock, hooks.onOverflow, options.queue_length);
    this.pass = new ReconcilePass(
      {
        ...shared,
        vanished: this.vanished,
        scanner: this.scanner,
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
        this.rescan.update();
        hooks.onRest(result);
      },
    });
  }

  /** Runs a pass as soon as possible. */
  kick(): void {
    this.#kicked = true;
    this.#loop.schedule();
  }

  /** Stops all parts; resolves when the pass in progress has ended. */
  async stop(): Promise<void> {
    this.rescan.stop();
    await this.#loop.stop();
    await this.watch_set.stop();
  }

  /** Whether everything is committed that was pending when the directories had last been scanned. */
  isReconciled(waiter: { after_generation: number | null }): boolean {
    if (!this.pass.is_scanned || this.#kicked) return false;
    waiter.after_generation ??= this.pending.last_generation;
    return (
      this.pending.oldestGeneration() > waiter.after_generation &&
      this.vanished.firstAfter() > waiter.after_generation
    );
  }

  #step(): Promise<PassResult> {
    this.#kicked = false;
    return this.pass.step();
  }

  #nextDueMs(clock: Clock): number | null {
    if (this.#kicked || this.scanner.size > 0) return clock.monotonicMs();
    const due = [this.pending.nextDueMs(), this.root.nextDueMs()];
    // Vanished nodes expire only after all earlier names are observed, and those wake the loop by themselves.
    const can_expire = this.pass.is_scanned && this.vanished.firstAfter() < this.pending.oldestGeneration();
    if (can_expire) due.push(this.vanished.nextDueMs());
    const known = due.filter((at) => at !== null);
    return known.length > 0 ? Math.min(...known) : null;
  }

  #signal(dir: TreeNode, signal: Signal, name: string | null, own: boolean): void {
    this.#overflow.signal();
    if (!dir.known) return;
    // A signal does not carry the bytes of a name that is not UTF-8; a scan of the directory finds them.
    if (name === null || name.includes('\ufffd')) this.scanner.add(dir, false);
    else if (!this.scanner.isIgnored(dir, name)) this.pending.signal(dir, name, signal, own);
    this.#loop.schedule();
  }

  #ready(dir: TreeNode): void {
    this.scanner.add(dir, false);
    this.#loop.schedule();
  }

  /** A directory was not at its path when its watch was to be set. */
  #missed(dir: TreeNode): void {
    if (dir.parent) this.pending.add(dir.parent, dir.name);
    this.kick();
  }

  /** Rescans what no watch covers. A directory without a watch is scanned after another attempt to set one. */
  #rescan(hooks: EngineHooks): void {
    hooks.onReconcile('uncovered');
    this.watch_set.retry();
    for (const dir of this.mounts.roots.keys()) this.scanner.add(dir, true);
    this.kick();
  }
}
