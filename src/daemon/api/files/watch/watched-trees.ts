import type { Clock } from '../../../../base/clock.ts';
import type { Log } from '../../../../base/log.ts';
import { FILE_WATCHED_TREES_MAX } from '../../../../contract/defaults.ts';
import { ApiError } from '../../../../contract/errors.ts';
import { pathBelow } from '../../../../watch/ignore.ts';
import { type TreeFollower, WatchedTree } from './watched-tree.ts';

/** Only the names of the directory itself. */
const ITS_NAMES_ALONE = ['*/**'];

/** What watched trees are made with. */
export interface WatchedTreesParts {
  clock: Clock;
  log: Log;
  /** The daemon's own files and directories, which are never watched. */
  own_paths: readonly string[];
}

/** What is watched: a directory's names, or its whole tree. */
interface Extent {
  directory: string;
  recursive: boolean;
}

/** A tree that somebody follows. */
interface Shared extends Extent {
  tree: WatchedTree;
  started: Promise<void>;
  end: () => Promise<void>;
}

/**
 * The trees that clients watch. One that holds another is watched in its place, so that nothing is indexed twice, however
 * many follow it.
 */
export class WatchedTrees {
  readonly #parts: WatchedTreesParts;
  readonly #shared = new Set<Shared>();
  readonly #followed = new Map<TreeFollower, Shared>();

  constructor(parts: WatchedTreesParts) {
    this.#parts = parts;
  }

  /**
   * Follows a directory until `leave`; resolves with the tree that tells of it, when every later change will be told.
   * Throws `too_many_requests`.
   */
  async follow(directory: string, recursive: boolean, follower: TreeFollower): Promise<WatchedTree> {
    const extent = { directory, recursive };
    const known = [...this.#shared].find((shared) => holds(shared, extent));
    const shared = known ?? this.#start(extent);
    this.#join(shared, follower);
    try {
      await shared.started;
      if (!known) await this.#takeOver(shared);
    } catch (error) {
      await this.leave(follower);
      throw error;
    }
    return (this.#followed.get(follower) ?? shared).tree;
  }

  /** Stops telling a follower, and frees the tree once nobody follows it. Idempotent. */
  async leave(follower: TreeFollower): Promise<void> {
    const shared = this.#followed.get(follower);
    if (!shared) return;
    this.#followed.delete(follower);
    shared.tree.followers.delete(follower);
    if (shared.tree.followers.size === 0) await this.#end(shared);
  }

  /** Ends all of them. Idempotent. */
  async stop(): Promise<void> {
    this.#followed.clear();
    await Promise.all([...this.#shared].map((shared) => this.#end(shared)));
  }

  #join(shared: Shared, follower: TreeFollower): void {
    shared.tree.followers.add(follower);
    this.#followed.set(follower, shared);
  }

  /** Moves the followers of the trees that a new one holds to it. */
  async #takeOver(shared: Shared): Promise<void> {
    const held = [...this.#shared].filter((other) => other !== shared && holds(shared, other));
    for (const other of held) {
      // Its state is known then; one that cannot be watched has no followers.
      await other.started.catch(() => {});
      if (!this.#shared.has(shared)) return;
      for (const follower of [...other.tree.followers]) {
        other.tree.followers.delete(follower);
        this.#join(shared, follower);
        follower.onMoved(shared.tree);
      }
      await this.#end(other);
    }
  }

  async #end(shared: Shared): Promise<void> {
    this.#shared.delete(shared);
    await shared.end();
  }

  #start({ directory, recursive }: Extent): Shared {
    if (this.#shared.size >= FILE_WATCHED_TREES_MAX) {
      throw new ApiError(
        'too_many_requests',
        `At most ${FILE_WATCHED_TREES_MAX} directories are watched at a time.`,
      );
    }
    const { clock, log, own_paths } = this.#parts;
    const tree = new WatchedTree(directory);
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
    const shared = {
      directory,
      recursive,
      tree,
      started: watcher.then((each) => each.start()),
      end: async () => (await watcher).stop(),
    };
    this.#shared.add(shared);
    return shared;
  }
}

function holds(outer: Extent, inner: Extent): boolean {
  if (outer.directory === inner.directory) return outer.recursive || !inner.recursive;
  return outer.recursive && pathBelow(outer.directory, inner.directory) !== null;
}
