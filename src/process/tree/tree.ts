import { readlinkSync } from 'node:fs';
import { systemClock } from '../../base/clock.ts';
import { ProcessTable } from '../../base/linux/process-table.ts';
import { isHelper, isZombie, type ProcStat, readPidNamespace, readPids } from '../../base/linux/procfs.ts';
import { SharedWork } from '../../base/shared-work.ts';

/**
 * Which processes belong to a supervised one.
 *
 * Most of what the program starts is in its session. A descendant that made a session of its own has left it, and one
 * whose parent has ended is no longer linked to the program either; it still carries the tag in the environment that
 * the supervisor gave the first process.
 *
 * The kernel does not reuse the pid of an ended leader while its session has a member, but may do so afterwards.
 * So the session of an ended leader counts only if a member proves it: by the tag, by having existed when the leader
 * ended, or by having been proven at an earlier check.
 */

/** The environment variable that tags a supervised process and its descendants. */
export const TAG_VARIABLE = 'SANDBOXD_PROCESS_MARK';

/** The process table that a machine boots with, as /proc/self/ns/pid names it: PROC_PID_INIT_INO. */
const TABLE_OF_THE_MACHINE = 'pid:[4026531836]';

/** The first process of a tree, the leader of its session. */
export interface TreeRoot {
  /** 0 if it is unknown. */
  readonly pid: number;
  /** In ticks after boot; 0 while it is unknown. */
  readonly start_ticks: number;
  readonly tag: string;
  /** Null while the pid is its own; afterwards when it was last seen, in ticks after boot, or 0 if that is unknown. */
  readonly ended_ticks: number | null;
  /** Start times, by pid, of the members that its session was proven to have at the last check after its end. */
  readonly proven: Map<number, number>;
}

/** The root of a tree of which only the tag is known. */
export function rootByTag(tag: string): TreeRoot {
  return { pid: 0, start_ticks: 0, tag, ended_ticks: 0, proven: new Map() };
}

interface KnownTag {
  start_ticks: number;
  tag: string | null;
  sightings: number;
}

/** A process without a tag may be between fork and exec; after this many checks it counts as untagged. */
const SIGHTINGS = 2;

/** Finds the members of trees. Caches the tag of each process, since reading it is the costly part. */
export class TreeFinder {
  /** The kernel's process table; its variable is the tag. */
  readonly table = new ProcessTable(systemClock, TAG_VARIABLE);
  readonly #tags = new Map<number, KnownTag>();
  readonly #isGivenUp: (pid: number) => boolean;
  readonly #readings = new SharedWork<Relations>();
  #owns_table = false;

  /** `isGivenUp`: whether a child of the daemon can neither be ended nor do anything: it belongs to no tree. */
  constructor(isGivenUp: (pid: number) => boolean = () => false) {
    this.#isGivenUp = isGivenUp;
  }

  /** Determines whether the whole process table is the sandbox's. Call it before any process is started. */
  async open(): Promise<void> {
    this.#owns_table = await ownsTable();
  }

  /** Every process of the sandbox if that can be determined, else the members of these trees. Throws as `find`. */
  async findAll(roots: readonly TreeRoot[]): Promise<ProcStat[]> {
    if (!this.#owns_table) return (await this.find(roots)).flat();
    return ofSandbox((await this.#read()).stats);
  }

  /**
   * The live members of each tree, including the root itself, in the order of `roots`. Throws `too_many_requests` if
   * the process table cannot be read now.
   */
  async find(roots: readonly TreeRoot[]): Promise<ProcStat[][]> {
    if (roots.length === 0) return [];
    const relations = await this.#read();
    return roots.map((root) => [...membersOf(root, relations)]);
  }

  /** Like `find`, but for views: what it gives may have been read a moment before the call. */
  async look(roots: readonly TreeRoot[]): Promise<ProcStat[][]> {
    const relations = await (this.#readings.present ?? this.#read());
    return roots.map((root) => [...membersOf(root, relations)]);
  }

  /** Which of these very processes still exist. Throws as `find`. */
  readonly stillThere = (stats: readonly ProcStat[]): Promise<ProcStat[]> => this.table.stillThere(stats);

  /** A reading that begins after the call. */
  #read(): Promise<Relations> {
    return this.#readings.run(() => this.#readRelations());
  }

  async #readRelations(): Promise<Relations> {
    const stats = await this.table.readAll();
    for (const pid of stats.keys()) if (this.#isGivenUp(pid)) stats.delete(pid);
    const tags = await this.#readTags(stats);
    const all = [...stats.values()];
    return {
      stats,
      tags,
      children: grouped(all, ({ parent }) => parent),
      sessions: grouped(all, ({ session }) => session),
      tagged: grouped(all, ({ pid }) => tags.get(pid)),
    };
  }

  async #readTags(stats: Map<number, ProcStat>): Promise<Map<number, string>> {
    for (const [pid, { start_ticks }] of this.#tags) {
      const stat = stats.get(pid);
      // Of one whose start is unknown now, what was known of it is believed.
      const is_same = stat?.start_ticks === start_ticks || stat?.start_ticks === 0;
      if (!is_same) this.#tags.delete(pid);
    }
    const unknown = [...stats.values()].filter(({ pid }) => {
      const known = this.#tags.get(pid);
      return !known || (known.tag === null && known.sightings < SIGHTINGS);
    });
    const values = await this.table.variables(unknown.map(({ pid }) => pid));
    for (const [index, { pid, start_ticks }] of unknown.entries()) {
      const tag = values[index];
      if (tag === undefined) continue;
      this.#tags.set(pid, { start_ticks, tag, sightings: (this.#tags.get(pid)?.sightings ?? 0) + 1 });
    }
    const found = new Map<number, string>();
    for (const [pid, { tag }] of this.#tags) if (tag !== null) found.set(pid, tag);
    return found;
  }
}

/** The processes of a table, and who of them belongs together: it is read once for many trees. */
interface Relations {
  stats: ReadonlyMap<number, ProcStat>;
  tags: ReadonlyMap<number, string>;
  children: ReadonlyMap<number, ProcStat[]>;
  sessions: ReadonlyMap<number, ProcStat[]>;
  tagged: ReadonlyMap<string | undefined, ProcStat[]>;
}

function grouped<Key>(stats: readonly ProcStat[], keyOf: (stat: ProcStat) => Key): Map<Key, ProcStat[]> {
  const groups = new Map<Key, ProcStat[]>();
  for (const stat of stats) {
    const key = keyOf(stat);
    const group = groups.get(key);
    if (group) group.push(stat);
    else groups.set(key, [stat]);
  }
  return groups;
}

function membersOf(root: TreeRoot, relations: Relations): Set<ProcStat> {
  // Grows while it is gone through: a line of descent may be as long as the table.
  const found = new Set([...(relations.tagged.get(root.tag) ?? []), ...sessionOf(root, relations)]);
  for (const { pid } of found) for (const child of relations.children.get(pid) ?? []) found.add(child);
  for (const stat of found) if (isZombie(stat)) found.delete(stat);
  return found;
}

/** The members of the root's own session; none if its pid may have been reused. */
function sessionOf(root: TreeRoot, { stats, tags, sessions }: Relations): ProcStat[] {
  if (root.pid <= 1) return [];
  const session = sessions.get(root.pid) ?? [];
  const holder = stats.get(root.pid);
  const is_leader =
    holder !== undefined &&
    (root.start_ticks === 0 || holder.start_ticks === 0 || holder.start_ticks === root.start_ticks);
  if (root.ended_ticks === null && is_leader) return session;
  const last_ticks = root.ended_ticks ?? 0;
  const is_ours = session.some(
    ({ pid, start_ticks }) =>
      tags.get(pid) === root.tag ||
      (start_ticks > 0 && (start_ticks <= last_ticks || root.proven.get(pid) === start_ticks)),
  );
  root.proven.clear();
  if (!is_ours) return [];
  for (const { pid, start_ticks } of session) root.proven.set(pid, start_ticks);
  return session;
}

/**
 * Whether the daemon and its sandbox have a process table (a pid namespace) of their own: not the machine's, and at the
 * start with no process in it but the daemon and the init process. Every later process then belongs to the sandbox,
 * whatever its session, parent and environment. False if that cannot be determined.
 */
async function ownsTable(): Promise<boolean> {
  try {
    const self = Number(readlinkSync('/proc/self'));
    const others = (await readPids()).filter((pid) => pid !== 1 && pid !== self);
    return readPidNamespace() !== TABLE_OF_THE_MACHINE && self === process.pid && others.length === 0;
  } catch {
    return false;
  }
}

/**
 * The processes of such a table that belong to the sandbox: all but the init process, the daemon, the daemon's own
 * helpers, and processes that entered from outside, as with `docker exec`, with their descendants.
 */
function ofSandbox(stats: ReadonlyMap<number, ProcStat>): ProcStat[] {
  const daemon = stats.get(process.pid);
  if (!daemon) return [];
  return [...stats.values()].filter((stat) => {
    if (stat.pid <= 1 || stat.pid === daemon.pid || isZombie(stat)) return false;
    return !isHelper(stat, daemon) && !isFromOutside(stat, stats);
  });
}

/** A parent in another table is shown as 0; the parent of an orphan is the init process. */
function isFromOutside(stat: ProcStat, stats: ReadonlyMap<number, ProcStat>): boolean {
  let first = stat;
  for (let up = stats.get(stat.parent); up; up = stats.get(up.parent)) first = up;
  return first.parent === 0 && first.pid !== 1;
}
