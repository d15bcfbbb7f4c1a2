import { FSWatcher } from 'chokidar';

/**
 * A chokidar watcher that only sets watches, one per directory, and emits their signals as `raw`. The scanner and the
 * prober find out what is in a directory and what a signal means.
 *
 * Setting a single watch takes two members that chokidar does not document, marks as internal and may change in any
 * release: `FSWatcher.handler.subscribePath` and `FSWatcher.isUnwatched`. Only this file uses them. package.json names
 * one exact version of chokidar, and `chokidar-internals.test.ts` fails for a version that lacks one of them.
 *
 * The public interface (`add` of each directory, `ignored` for everything else, `raw`, `unwatch`) loses no event either,
 * but costs more. `npm run bench watch-ways` measures both; what else was found is in test/bench/README.md.
 *
 * | CPU time | public | here |
 * |---|---|---|
 * | to watch 5 000 directories with 100 000 files, which `add` lists and stats a second time | 2 150 ms | 130 ms |
 * | per change, because chokidar acts on each signal as well | 69 µs | 53 µs |
 * | per change, once 500 directories were made and removed: `unwatch` never forgets a path | 2 285 µs | 43 µs |
 */
export class BareWatcher extends FSWatcher {
  constructor() {
    super({ followSymlinks: false, atomic: false, ignored: () => true });
  }

  /**
   * Internal to chokidar, which asks this before it acts on a signal: it never does. Otherwise it would queue an empty task
   * for each signal, a seventh of the CPU time of a change.
   */
  override isUnwatched(): boolean {
    return true;
  }

  /**
   * Watches the entries of one directory until the returned function is called; its signals are emitted as `raw`.
   * Undefined if that failed: the reason, if there is one, was emitted as `error` before.
   */
  subscribe(path: string): (() => void | Promise<void>) | undefined {
    return this.handler.subscribePath(path, () => {}, undefined, true);
  }
}
