import { watch } from 'node:fs';
import { basename } from 'node:path';
import { FSWatcher } from 'chokidar';
import { bytesOf } from './name.ts';
import type { Signal } from './touched-names.ts';

/** The watch of one directory: its entries, not what is below them. */
export interface DirectoryWatch {
  close(): Promise<void>;
}

/** `limit`: the kernel grants no further watch. `unreadable`: not ours to watch. `gone`: no such directory. */
export type WatchFailure = 'limit' | 'unreadable' | 'gone';

/** A signal names an entry, or nothing where the kernel named none. `own`: it may be about the directory itself. */
export type OnSignal = (signal: Signal, name: string | null, own: boolean) => void;

const LIMITS = new Set(['ENOSPC', 'EMFILE', 'ENFILE', 'ENOMEM']);
const GONE = new Set(['ENOENT', 'ENOTDIR']);

/**
 * Watches one directory, by chokidar where it can spell the path: it takes a backslash for a slash, and names that
 * are not UTF-8 for others.
 */
export function watchDirectory(path: string, onSignal: OnSignal): Promise<DirectoryWatch | WatchFailure> {
  const own_name = basename(path);
  const signal = (event: string, name: string | null) =>
    onSignal(event === 'change' ? 'change' : 'rename', name, name === own_name);
  return path.isWellFormed() && !path.includes('\\')
    ? watchByChokidar(path, signal)
    : watchByBytes(path, signal);
}

type RawSignal = (event: string, name: string | null) => void;

/**
 * chokidar for its watches alone. What is in the directory, and what a signal means, is for the index to find out:
 * chokidar's own listing and looking would be a second one of each.
 */
class WatchOnly extends FSWatcher {
  override createScanStream(): undefined {
    return undefined;
  }

  override isUnwatched(): boolean {
    return this.readyEmitted;
  }
}

function watchByChokidar(path: string, signal: RawSignal): Promise<DirectoryWatch | WatchFailure> {
  return new Promise((resolve) => {
    const watcher = new WatchOnly({
      depth: 0,
      atomic: false,
      followSymlinks: false,
      ignored: (candidate) => candidate !== path,
    });
    let found = false;
    let failure: WatchFailure | null = null;
    watcher.on('raw', signal);
    watcher.on('addDir', () => {
      found = true;
    });
    watcher.on('error', (error) => {
      failure = failureOf(error);
      // After the start a lost watch is a change that nobody named.
      signal('rename', null);
    });
    watcher.on('ready', () => {
      if (found && failure === null) return resolve({ close: () => watcher.close() });
      void watcher.close().then(() => resolve(failure ?? 'gone'));
    });
    watcher.add(path);
  });
}

async function watchByBytes(path: string, signal: RawSignal): Promise<DirectoryWatch | WatchFailure> {
  try {
    const watcher = watch(bytesOf(path), signal);
    watcher.on('error', () => signal('rename', null));
    return { close: async () => watcher.close() };
  } catch (error) {
    return failureOf(error);
  }
}

function failureOf(error: unknown): WatchFailure {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  if (LIMITS.has(code)) return 'limit';
  return GONE.has(code) ? 'gone' : 'unreadable';
}
