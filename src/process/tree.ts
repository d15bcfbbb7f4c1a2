import { type ProcStat, readAllStats, readVariable } from './proc.ts';

/**
 * Which processes belong to a supervised one.
 *
 * A process group holds what the program starts in the ordinary way. A descendant that made a session of its own
 * has left the group, and one whose parent has ended has left the line of descent too; it still carries the
 * mark in the environment that the supervisor gave the first process.
 */

/** The variable that marks a supervised process and its descendants. */
export const MARK_VARIABLE = 'SANDBOXD_PROCESS_MARK';

/** The first process of a tree, 0 where it is not known. `ended` tells that its pid may belong to somebody else by now. */
export interface TreeRoot {
  pid: number;
  mark: string;
  ended: boolean;
}

interface KnownMark {
  start_ticks: number;
  mark: string | null;
  sightings: number;
}

/** A process without a mark may be between fork and exec; seen without one this often, it has none. */
const SIGHTINGS = 2;

/** Finds the members of trees; remembers which mark a pid carries, since reading it is the costly part. */
export class TreeFinder {
  readonly #marks = new Map<number, KnownMark>();

  /** The live members of each tree, the roots themselves included, in the order of `roots`. */
  async find(roots: readonly TreeRoot[]): Promise<ProcStat[][]> {
    const stats = await readAllStats();
    const marks = await this.#readMarks(stats);
    const children = childrenOf(stats);
    return roots.map((root) => [...membersOf(root, stats, marks, children)]);
  }

  async #readMarks(stats: Map<number, ProcStat>): Promise<Map<number, string>> {
    for (const [pid, known] of this.#marks) {
      if (stats.get(pid)?.start_ticks !== known.start_ticks) this.#marks.delete(pid);
    }
    const found = new Map<number, string>();
    await Promise.all(
      [...stats.values()].map(async ({ pid, start_ticks }) => {
        let known = this.#marks.get(pid);
        if (!known || (known.mark === null && known.sightings < SIGHTINGS)) {
          const mark = await readVariable(pid, MARK_VARIABLE);
          known = { start_ticks, mark, sightings: (known?.sightings ?? 0) + 1 };
          this.#marks.set(pid, known);
        }
        if (known.mark !== null) found.set(pid, known.mark);
      }),
    );
    return found;
  }
}

function childrenOf(stats: Map<number, ProcStat>): Map<number, ProcStat[]> {
  const children = new Map<number, ProcStat[]>();
  for (const stat of stats.values()) {
    const siblings = children.get(stat.parent);
    if (siblings) siblings.push(stat);
    else children.set(stat.parent, [stat]);
  }
  return children;
}

function membersOf(
  root: TreeRoot,
  stats: Map<number, ProcStat>,
  marks: Map<number, string>,
  children: Map<number, ProcStat[]>,
): Set<ProcStat> {
  const members = new Set<ProcStat>();
  const add = (stat: ProcStat) => {
    if (members.has(stat)) return;
    if (stat.state !== 'Z' && stat.state !== 'X') members.add(stat);
    for (const child of children.get(stat.pid) ?? []) add(child);
  };
  // The number of an ended leader stays taken while its group lives; once it is somebody's pid, the group is another.
  const group_is_ours = root.pid > 1 && (!root.ended || !stats.has(root.pid));
  for (const stat of stats.values()) {
    const in_group = stat.group === root.pid || stat.session === root.pid;
    if (marks.get(stat.pid) === root.mark || (in_group && group_is_ours)) add(stat);
  }
  return members;
}
