import type { DirectoryScanner } from './directory-scanner.ts';
import type { Tree } from './index/tree.ts';
import { directories } from './index/tree-node.ts';
import type { Classified, Observation } from './observation.ts';
import type { PendingNames } from './signals/pending-names.ts';
import type { WatchSet } from './signals/watch-set.ts';

interface AdaptOptions {
  tree: Tree;
  watch_set: WatchSet;
  pending: PendingNames;
  scanner: DirectoryScanner;
}

/**
 * Adapts the watches, and what is to be observed and scanned, to a committed pass. Closes watches first, because a path
 * may belong to another directory now.
 */
export function adaptWatches(
  { tree, watch_set, pending, scanner }: AdaptOptions,
  observations: Observation[],
  classified: Classified,
): void {
  for (const dir of classified.gone) {
    watch_set.drop(dir);
    pending.forget(dir);
    scanner.forget(dir);
  }
  const moved = classified.moved.flatMap((dir) => [...directories(dir)]);
  for (const dir of moved) watch_set.drop(dir);
  for (const dir of [...moved, ...classified.appeared]) if (dir.known) watch_set.add(dir);
  for (const node of classified.also_changed) if (node.parent) pending.add(node.parent, node.name);
  for (const observation of observations) {
    const node = tree.child(observation.dir, observation.name);
    if (!node?.is_directory || !watch_set.has(node)) continue;
    if (observation.changed && watch_set.isUnreadable(node)) watch_set.renew(node);
    // Another directory may have been in its place for a while.
    else if (observation.renames > 0) scanner.add(node, true);
  }
}
