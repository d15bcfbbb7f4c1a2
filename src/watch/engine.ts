import type { Clock } from '../base/clock.ts';
import type { Service } from '../base/service.ts';
import type { WatcherStatus } from '../contract/sandbox.ts';
import { Vanished } from './classify/vanished.ts';
import { DirectoryScanner } from './directory-scanner.ts';
import { type Disk, disk as localDisk } from './disk.ts';
import { compileIgnored } from './ignore.ts';
import { loadTree } from './index/stored-tree.ts';
import type { Tree } from './index/tree.ts';
import type { TreeNode } from './index/tree-node.ts';
import type { TreeStore } from './index/tree-store.ts';
import { Loop, type PassResult } from './loop.ts';
import { PeriodicRescan } from './periodic-rescan.ts';
import { Prober } from './prober.ts';
import { ReconcilePass } from './reconcile-pass.ts';
import { type RemoteLimits, RemoteMounts } from './remote-mounts.ts';
import { RootGate } from './root-gate.ts';
import { ChokidarWatches, type DirectoryWatches } from './signals/directory-watch.ts';
import { OverflowGuess } from './signals/overflow.ts';
import { PendingNames, type Signal } from './signals/pending-names.ts';
import { RootWatch } from './signals/root-watch.ts';
import { WatchSet } from './signals/watch-set.ts';
import { SilentWrites } from './silent-writes.ts';
import { initialStatus } from './status.ts';

/** The part of a log that the watch needs, small enough to cross a thread boundary as messages. */
export type WatchLog = Record<'debug' | 'info' | 'warn', (fields: object, message: string) => void>;

/** Options of an engine. */
export interface EngineOptions {
  /** The absolute path of the directory to watch. */
  watch_dir: string;
  /** The globs of `--watch-ignore`. */
  ignore: string[];
  /** The daemon's own files and directories, which are never watched. */
  own_paths: string[];
  clock: Clock;
  log: WatchLog;
  store: TreeStore;
  /** Called whenever no work is due at the moment. */
  onRest?: () => void;
  /** For tests: the file system, its limits, the watches on it, and the length of the kernel's queue in signals. */
  disk?: Disk;
  remote_limits?: RemoteLimits;
  watches?: DirectoryWatches;
  queue_length?: number;
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
  /** Null until the last known tree is loaded. */
  #watch: TreeWatch | null = null;
  #stopped = false;

  constructor(options: EngineOptions) {
    this.#options = options;
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
    log.debug({ watch_dir, first_time, index_size: tree.size }, 'starting to watch');
    this.#watch = new TreeWatch(this.#options, tree, first_time);
    await this.#watch.start();
  }

  /** Rescans the whole tree; resolves when the differences are committed, or when the outbox accepts nothing. */
  async reconcile(reason: string): Promise<void> {
    await this.#watch?.reconcile(reason);
  }

  /** Stops watching; resolves when the pass in progress has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#watch?.stop();
  }

  /** The current status. Source: contract section 6. */
  status(): WatcherStatus {
    if (this.#watch) return this.#watch.status();
    const status = initialStatus(this.#options.watch_dir);
    return this.#stopped ? { ...status, state: 'stopped' } : status;
  }
}

/** A caller that waits until everything pending is committed, or until the outbox accepts nothing more. */
interface Waiter {
  /** The generation to wait for; null until the directories are scanned. */
  after_generation: number | null;
  done: (result: 'reconciled' | 'blocked') => void;
}

/** The watch of a tree whose last known state is loaded: connects the parts, and says when work is due. */
class TreeWatch implements Service {
  readonly #options: EngineOptions;
  readonly #tree: Tree;
  readonly #pending: PendingNames;
  readonly #vanished = new Vanished();
  readonly #watch_set: WatchSet;
  readonly #scanner: DirectoryScanner;
  readonly #silent: SilentWrites;
  readonly #mounts: RemoteMounts;
  readonly #rescan: PeriodicRescan;
  readonly #root: RootWatch;
  readonly #overflow: OverflowGuess;
  readonly #pass: ReconcilePass;
  readonly #loop: Loop;
  readonly #reconciles: Record<string, number> = {};
  #waiters: Waiter[] = [];
  /** Whether a pass is due at once. */
  #kicked = false;
  #stopped = false;

  constructor(options: EngineOptions, tree: Tree, first_time: boolean) {
    const { clock, log, store, watch_dir, own_paths, disk = localDisk } = options;
    this.#options = options;
    this.#tree = tree;
    this.#pending = new PendingNames(clock);
    const gate = new RootGate({ watch_dir, own_paths, disk, log });
    this.#mounts = new RemoteMounts({ tree, clock, disk, log, remote_limits: options.remote_limits });
    const prober = new Prober(tree, this.#pending, clock, disk, gate, this.#mounts);
    this.#watch_set = new WatchSet({
      watches: options.watches ?? new ChokidarWatches(),
      pathOf: (dir) => tree.path(dir),
      onSignal: (dir, signal, name, own) => this.#signal(dir, signal, name, own),
      onReady: (dir) => this.#ready(dir),
      onGone: (dir) => this.#missed(dir),
    });
    const shared = {
      tree,
      pending: this.#pending,
      prober,
      watch_set: this.#watch_set,
      mounts: this.#mounts,
      clock,
    };
    const ignored = compileIgnored(watch_dir, options.ignore, own_paths);
    this.#scanner = new DirectoryScanner({ ...shared, ignored, disk });
    this.#silent = new SilentWrites(shared);
    this.#rescan = new PeriodicRescan({
      clock,
      watch_set: this.#watch_set,
      scanner: this.#scanner,
      mounts: this.#mounts,
      pseudo: prober.pseudo,
      gate,
      onDue: () => this.#rescanUncovered(),
    });
    this.#root = new RootWatch({
      ...shared,
      vanished: this.#vanished,
      disk,
      log,
      onReplaced: () => this.#count('root_replaced'),
    });
    this.#overflow = new OverflowGuess(clock, () => void this.reconcile('overflow'), options.queue_length);
    this.#pass = new ReconcilePass(
      {
        ...shared,
        vanished: this.#vanished,
        scanner: this.#scanner,
        silent: this.#silent,
        root: this.#root,
        overflow: this.#overflow,
        store,
      },
      first_time,
    );
    this.#loop = new Loop({
      clock,
      step: () => this.#step(),
      nextDueMs: () => this.#nextDueMs(),
      onRest: (result) => this.#rest(result),
    });
  }

  async start(): Promise<void> {
    const first_time = this.#pass.baseline;
    this.#count('start');
    this.#kick();
    const result = await this.#untilReconciled();
    if (!first_time) return;
    const complete = this.#completeBaseline(result);
    if (result === 'reconciled') await complete;
  }

  async reconcile(reason: string): Promise<void> {
    if (this.#stopped) return;
    this.#count(reason);
    this.#scanner.add(this.#tree.root, true);
    this.#kick();
    await this.#untilReconciled();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#rescan.stop();
    await this.#loop.stop();
    await this.#watch_set.stop();
    for (const waiter of this.#waiters.splice(0)) waiter.done('blocked');
  }

  status(): WatcherStatus {
    const status = { ...initialStatus(this.#options.watch_dir), reconciles: { ...this.#reconciles } };
    if (this.#stopped) return { ...status, state: 'stopped' };
    const state = this.#pass.baseline ? 'starting' : 'watching';
    return {
      ...status,
      state: this.#root.waiting ? 'waiting' : state,
      directories_watched: this.#watch_set.watched,
      directories_compared: this.#watch_set.refused,
      directories_unreadable: this.#scanner.hidden.size,
      index_size: this.#tree.size - 1,
      queued: this.#pending.size + this.#vanished.size + this.#scanner.size,
      events: this.#pass.events,
      degraded: this.#rescan.degraded(),
    };
  }

  /** Commits the root once the first index is complete, which marks it as complete. */
  async #completeBaseline(first: 'reconciled' | 'blocked'): Promise<void> {
    let result = first;
    while (result === 'blocked' && !this.#stopped) result = await this.#untilReconciled();
    this.#pass.completeBaseline();
    this.#kick();
    while (this.#pass.baseline && !this.#stopped) await this.#untilReconciled();
  }

  /** Runs a pass as soon as possible. */
  #kick(): void {
    this.#kicked = true;
    this.#loop.schedule();
  }

  #step(): Promise<PassResult> {
    this.#kicked = false;
    return this.#pass.step();
  }

  #nextDueMs(): number | null {
    if (this.#kicked || this.#scanner.size > 0) return this.#options.clock.monotonicMs();
    const due = [this.#pending.nextDueMs(), this.#root.nextDueMs(), this.#silent.nextDueMs()];
    // Vanished nodes expire only after all earlier names are observed, and those wake the loop by themselves.
    const can_expire =
      this.#pass.is_scanned && this.#vanished.firstAfter() < this.#pending.oldestGeneration();
    if (can_expire) due.push(this.#vanished.nextDueMs());
    const known = due.filter((at) => at !== null);
    return known.length > 0 ? Math.min(...known) : null;
  }

  /** No further work is due at the moment, or the outbox accepts nothing. */
  #rest(result: PassResult): void {
    this.#rescan.update();
    this.#release(result);
    this.#options.onRest?.();
  }

  /** Resolves when everything that is pending now is committed. */
  #untilReconciled(): Promise<'reconciled' | 'blocked'> {
    return new Promise((done) => this.#waiters.push({ after_generation: null, done }));
  }

  #release(result: PassResult): void {
    this.#waiters = this.#waiters.filter((waiter) => {
      if (result === 'blocked') waiter.done('blocked');
      else if (!this.#isReconciled(waiter)) return true;
      else waiter.done('reconciled');
      return false;
    });
  }

  /** Whether everything is committed that was pending when the directories had last been scanned. */
  #isReconciled(waiter: Waiter): boolean {
    if (!this.#pass.is_scanned || this.#kicked) return false;
    waiter.after_generation ??= this.#pending.last_generation;
    return (
      this.#pending.oldestGeneration() > waiter.after_generation &&
      this.#vanished.firstAfter() > waiter.after_generation
    );
  }

  #signal(dir: TreeNode, signal: Signal, name: string | null, own: boolean): void {
    this.#overflow.signal();
    if (!dir.known) return;
    this.#silent.signal(dir);
    // The directory itself may be gone, and its watch with it. chokidar concludes that too when an entry of the same name
    // is removed: it would replace the watch later, and miss what happens meanwhile.
    if (own && signal === 'rename') this.#watch_set.renew(dir);
    // A signal does not carry the bytes of a name that is not UTF-8; a scan of the directory finds them.
    if (name === null || name.includes('\ufffd')) this.#scanner.add(dir, false);
    else if (!this.#scanner.isIgnored(dir, name)) this.#pending.signal(dir, name, signal, own);
    this.#loop.schedule();
  }

  #ready(dir: TreeNode): void {
    this.#scanner.add(dir, false);
    this.#loop.schedule();
  }

  /** A directory was not at its path when its watch was to be set. */
  #missed(dir: TreeNode): void {
    if (dir.parent) this.#pending.add(dir.parent, dir.name);
    this.#kick();
  }

  /** Rescans what no watch covers. A directory without a watch is scanned after another attempt to set one. */
  #rescanUncovered(): void {
    this.#count('uncovered');
    this.#watch_set.retry();
    for (const dir of this.#mounts.roots.keys()) this.#scanner.add(dir, true);
    this.#kick();
  }

  #count(reason: string): void {
    this.#reconciles[reason] = (this.#reconciles[reason] ?? 0) + 1;
  }
}
