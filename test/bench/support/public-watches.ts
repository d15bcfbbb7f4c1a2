import { FSWatcher } from 'chokidar';
import type { DirectoryWatches, OnSignal } from '../../../src/watch/signals/directory-watch.ts';

interface Watched {
  onSignal: OnSignal;
  is_set: boolean;
}

/**
 * Watches set by chokidar's public interface alone, to see what that costs: one watcher, which is told every directory
 * and ignores everything else. It takes part in a benchmark; README.md says why the product does not use it.
 *
 * `add` sets a watch later and reports no directory that is gone. `addDir` comes in the turn that sets the watch, so a
 * scan after that turn misses nothing: it is asked for by a signal without a name.
 */
export class PublicWatches implements DirectoryWatches {
  readonly #watched = new Map<string, Watched>();
  readonly #chokidar = new FSWatcher({
    followSymlinks: false,
    atomic: false,
    ignored: (path) => !this.#watched.has(path),
  });
  #unset = 0;
  #last_signal = '';
  #onComplete: (() => void)[] = [];

  constructor() {
    this.#chokidar.on('addDir', (path) => {
      const watched = this.#watched.get(path);
      if (watched) setImmediate(() => this.#set(watched));
    });
    this.#chokidar.on('raw', (event, name, details) => {
      this.#signal((details as { watchedPath: string }).watchedPath, event, name);
    });
    this.#chokidar.on('error', (error) => {
      throw error;
    });
  }

  watch(path: string, onSignal: OnSignal): () => void {
    const watched = { onSignal, is_set: false };
    this.#watched.set(path, watched);
    this.#unset++;
    this.#chokidar.add(path);
    return () => {
      this.#watched.delete(path);
      this.#set(watched);
      this.#chokidar.unwatch(path);
    };
  }

  /** Resolves when every watch is set. */
  async complete(): Promise<void> {
    if (this.#unset > 0) await new Promise<void>((resolve) => this.#onComplete.push(resolve));
  }

  async close(): Promise<void> {
    await this.#chokidar.close();
  }

  #set(watched: Watched): void {
    if (watched.is_set) return;
    watched.is_set = true;
    watched.onSignal('rename', null, false);
    if (--this.#unset === 0) for (const resolve of this.#onComplete.splice(0)) resolve();
  }

  /** A directory that is added and found in the one above it has two subscribers, which are told one after the other. */
  #signal(path: string, event: string, name: string | null): void {
    const signal = `${event} ${path}/${name}`;
    if (signal === this.#last_signal) return;
    this.#last_signal = signal;
    queueMicrotask(() => {
      this.#last_signal = '';
    });
    const own = name === path.slice(path.lastIndexOf('/') + 1);
    this.#watched.get(path)?.onSignal(event === 'change' ? 'change' : 'rename', name, own);
  }
}
