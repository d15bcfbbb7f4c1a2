import type { FileStat } from '../index/file-stat.ts';
import type { TreeNode } from '../index/tree-node.ts';
import type { Observation } from '../observation.ts';

/**
 * Something that was found at a place where it was not known.
 *
 * | State | Meaning | Left when |
 * |---|---|---|
 * | `open` | not handled yet | its turn comes, or another arrival needs its former place: `placing` |
 * | `placing` | its place is being cleared, which may place others first | it enters, or has to wait: `done` |
 * | `done` | reported, or put back for a later pass | never |
 */
export interface Arrival {
  observation: Observation;
  stat: FileStat;
  /** The known node that moved here; null if there is none. */
  source: TreeNode | null;
  /** The path that it left before it could arrive, because its former place had to be cleared; null otherwise. */
  left_path: string | null;
  /** The unknown name from which it was moved here: signalled right before, and gone; null if there is none. */
  temporary: Observation | null;
  /** What was at its place and was set aside under a name that is gone again; null if there is none. */
  aside: TreeNode | null;
  state: 'open' | 'placing' | 'done';
}
