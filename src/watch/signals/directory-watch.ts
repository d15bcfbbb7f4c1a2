import { watch } from 'node:fs';
import { basename } from 'node:path';
import { bytesOf } from '../index/name.ts';
import { BareWatcher } from './chokidar-internals.ts';
import type { Signal } from './pending-names.ts';

/** Why a directory is not watched. `limit`: the kernel grants no further watch. `unreadable`: no permission. `gone`: it does not exist. */
export type WatchFailure = 'limit' | 'unreadable' | 'gone';

/** Receives a signal. `name` is null if the kernel named no entry. `own`: it may be about the directory itself. */
export type OnSignal = (signal: Signal, name: string | null, own: boolean) => void;

/** Sets watches on directories. A watch covers the entries of its directory, not what is below them. */
export interface DirectoryWatches {
  /** Watches a directory until the returned function is called. A path must not be watched twice at a time. */
  watch(path: string, onSignal: OnSignal): (() => void) | WatchFailure;
  /** Closes all watches. */
  close(): Promise<void>;
}

const LIMITS = new Set(['ENOSPC', 'EMFILE', 'ENFILE', 'ENOMEM']);
const GONE = new Set(['ENOENT', 'ENOTDIR']);

/** Watches set by chokidar, which is used for nothing else. */
export class ChokidarWatches extends BareWatcher implements DirectoryWatches {
  readonly #listeners = new Map<string, OnSignal>();
  /** Stops each watch: chokidar itself does not know of them. */
  readonly #stops = new Set<() => void>();
  #failure: WatchFailure | null = null;

  constructor() {
    super();
    this.on('raw', (event, name, details) => {
      this.#signal((details as { watchedPath: string }).watchedPath, event, name);
    });
    this.on('error', (error) => {
      this.#failure = failureOf(error);
    });
  }

  /** Watches one directory; its path is in internal form. */
  watch(path: string, onSignal: OnSignal): (() => void) | WatchFailure {
    const stop = this.#watch(path, onSignal);
    if (typeof stop !== 'function') return stop;
    this.#stops.add(stop);
    return () => {
      this.#stops.delete(stop);
      stop();
    };
  }

  /** Closes all watches. */
  override async close(): Promise<void> {
    for (const stop of this.#stops) stop();
    this.#stops.clear();
    await super.close();
  }

  #watch(path: string, onSignal: OnSignal): (() => void) | WatchFailure {
    // chokidar treats a backslash as a slash and supports only UTF-8.
    if (!path.isWellFormed() || path.includes('\\')) return watchBytes(path, onSignal);
    this.#failure = null;
    this.#listeners.set(path, onSignal);
    const close = this.subscribe(path);
    if (!close || this.#failure) this.#listeners.delete(path);
    if (!close) return this.#failure ?? 'gone';
    return () => {
      this.#listeners.delete(path);
      void close();
    };
  }

  #signal(path: string, event: string, name: string | null): void {
    this.#listeners.get(path)?.(event === 'change' ? 'change' : 'rename', name, name === basename(path));
  }
}

function watchBytes(path: string, onSignal: OnSignal): (() => void) | WatchFailure {
  const own_name = basename(path);
  try {
    const watcher = watch(bytesOf(path), (event, name) => {
      onSignal(event === 'change' ? 'change' : 'rename', name, name === own_name);
    });
    watcher.on('error', () => onSignal('rename', null, false));
    return () => watcher.close();
  } catch (error) {
    return failureOf(error);
  }
}

function failureOf(error: unknown): WatchFailure {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  if (LIMITS.has(code)) return 'limit';
  return GONE.has(code) ? 'gone' : 'unreadable';
}
