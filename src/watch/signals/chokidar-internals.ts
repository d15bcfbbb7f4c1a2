import { FSWatcher } from 'chokidar';

/**
 * A chokidar watcher that only sets watches, one per directory. The scanner and the prober find out what is in a
 * directory and what a signal means; chokidar's public `add` would list and stat everything a second time, and set one
 * watch per file.
 *
 * Setting a single watch takes two members that chokidar does not document, marks as internal and may change in any
 * release: `FSWatcher.handler.subscribePath` and `FSWatcher.isUnwatched`. Only this file uses them. package.json names
 * one exact version of chokidar, and `chokidar-internals.test.ts` fails for a version that lacks one of them.
 */
export class BareWatcher extends FSWatcher {
  constructor() {
    super({ followSymlinks: false, atomic: false, ignored: () => true });
  }

  /** Internal to chokidar, which asks this before it acts on a signal: it never does. */
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
