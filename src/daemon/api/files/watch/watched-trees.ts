import type { Clock } from '../../../../base/clock.ts';
import type { Log } from '../../../../base/log.ts';
import { FILE_WATCHED_TREES_MAX } from '../../../../contract/defaults.ts';
import { ApiError } from '../../../../contract/errors.ts';
import { type TreeFollower, type TreeRows, WatchedTree } from './watched-tree.ts';

/** Only the names of the directory itself. */
const ITS_NAMES_ALONE = ['*/**'];

/** What watched trees are made with. */
export interface WatchedTreesParts {
  clock: Clock;
  log: Log;
  /** The daemon's own files and directories, which are never watched. */
  own_paths: readonly string[];
}

/** A tree that somebody follows. */
export interface Following {
  tree: WatchedTree;
  /** Frees the tree once nobody follows it. Idempotent. */
  stop(): Promise<void>;
}

interface Shared {
  tree: WatchedTree;
  started: Promise<void>;
  end: () => Promise<void>;
  users: number;
}

/** The trees that clients watch, each once however many follow it. */
export class WatchedTrees {
  readonly #parts: WatchedTreesParts;
  readonly #shared = new Map<string, Shared>();
  #compared = 0;

  constructor(parts: WatchedTreesParts) {
    this.#parts = parts;
  }

  /** Follows a directory; resolves when every later change will be told. Throws `too_many_requests`. */
  async follow(directory: string, recursive: boolean, follower: TreeFollower): Promise<Following> {
    const whole = `/${directory}`;
    // A tree also tells of the directory's own names.
    const key = recursive || this.#shared.has(whole) ? whole : directory;
    return this.#join(key, follower, () => this.#start(directory, key === whole, new WatchedTree()));
  }

  /** Follows a directory from an earlier state on: the differences come first. Such a tree is not shared. */
  async compare(
    directory: string,
    recursive: boolean,
    follower: TreeFollower,
    rows: TreeRows,
  ): Promise<Following> {
    this.#compared += 1;
    const key = `#${this.#compared}`;
    return this.#join(key, follower, () => this.#start(directory, recursive, new WatchedTree(rows)));
  }

  /** Ends all of them. Idempotent. */
  async stop(): Promise<void> {
    const all = [...this.#shared.values()];
    this.#shared.clear();
    await Promise.all(all.map(({ end }) => end()));
  }

  async #join(key: string, follower: TreeFollower, start: () => Shared): Promise<Following> {
    const shared = this.#shared.get(key) ?? start();
    this.#shared.set(key, shared);
    shared.users += 1;
    shared.tree.followers.add(follower);
    let is_stopped = false;
    const stop = async () => {
      if (is_stopped) return;
      is_stopped = true;
      shared.tree.followers.delete(follower);
      shared.users -= 1;
      if (shared.users > 0) return;
      if (this.#shared.get(key) === shared) this.#shared.delete(key);
      await shared.end();
    };
    try {
      await shared.started;
    } catch (error) {
      await stop();
      throw error;
    }
    return { tree: shared.tree, stop };
  }

  #start(directory: string, recursive: boolean, tree: WatchedTree): Shared {
    if (this.#shared.size >= FILE_WATCHED_TREES_MAX) {
      throw new ApiError(
        'too_many_requests',
        `At most ${FILE_WATCHED_TREES_MAX} directories are watched at a time.`,
      );
    }
    const { clock, log, own_paths } = this.#parts;
    const watcher = import('../../../../watch/thread/watcher.ts').then(({ Watcher }) => {
      const ignore = recursive ? [] : ITS_NAMES_ALONE;
      return new Watcher({
        watch_dir: directory,
        ignore,
        own_paths: [...own_paths],
        clock,
        log,
        store: tree,
      });
    });
    return {
      tree,
      started: watcher.then((each) => each.start()),
      end: async () => (await watcher).stop(),
      users: 0,
    };
  }
}
