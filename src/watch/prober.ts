import type { Clock } from '../base/clock.ts';
import type { Disk } from './disk.ts';
import { type FileStat, isDirectory, type ProbeResult, sameIdentity } from './index/file-stat.ts';
import type { Tree, TreeNode } from './index/tree.ts';
import type { Observation } from './observation.ts';
import type { RootGate } from './root-gate.ts';
import type { PendingName, PendingNames } from './signals/pending-names.ts';

/** What became of the watched directory itself. */
export type RootState = 'there' | 'missing' | 'replaced' | 'hidden';

export interface ObservationsTaken {
  looks: Observation[];
  displaced: Set<TreeNode>;
  /** Names in directories that are not at their place: to be looked at when these are found or gone. */
  postponed: Observation[];
  /** Names in directories that moved while they were looked at. */
  raced: Observation[];
}

/** Looks at names on the file system, and only through directories that are where the tree has them. */
export class Prober {
  readonly #tree: Tree;
  readonly #touched: PendingNames;
  readonly #clock: Clock;
  readonly #disk: Disk;
  readonly #gate: RootGate;
  /** Directories that are tables of the kernel, by path, with their file system's name: they count as hidden. */
  readonly tables = new Map<string, string>();
  #root_dev = 0;

  constructor(tree: Tree, touched: PendingNames, clock: Clock, disk: Disk, gate: RootGate) {
    this.#tree = tree;
    this.#touched = touched;
    this.#clock = clock;
    this.#disk = disk;
    this.#gate = gate;
  }

  /** Looks at the watched directory. `facts` are null unless there is a directory. */
  root(): { state: RootState; facts: FileStat | null } {
    const root = this.#tree.root;
    const result = this.#disk.look(root.name, true);
    if (result === 'hidden') return { state: 'hidden', facts: null };
    const found = result !== 'missing' && isDirectory(result.mode) ? result : null;
    if (!this.#gate.takes(found) || !found) return { state: 'missing', facts: null };
    this.#root_dev = found.dev;
    const facts = this.#relative(found);
    return { state: sameIdentity(root, facts) ? 'there' : 'replaced', facts };
  }

  /** Looks at one name by its path, whatever is on the way there. */
  lookAt(dir: TreeNode, name: string): ProbeResult {
    const path = this.#tree.childPath(dir, name);
    const result = this.#disk.look(path);
    if (this.tables.size > 0) this.tables.delete(path);
    if (typeof result === 'string') return result;
    const facts = this.#relative(result);
    return isDirectory(facts.mode) && facts.dev !== dir.dev && this.#isTables(path) ? 'hidden' : facts;
  }

  /** Only where something is mounted: everything else is on what the directory above it is on. */
  #isTables(path: string): boolean {
    const on = this.#disk.fileSystem(path);
    if (on?.kind !== 'tables') return false;
    this.tables.set(path, on.name);
    return true;
  }

  now(): number {
    return this.#clock.wallMs();
  }

  /** Tells of directories whether they are where the tree has them, each looked at once. */
  places(): (dir: TreeNode) => boolean {
    const round = new Round(this, this.#tree);
    return (dir) => round.place(dir) === 'there';
  }

  /** Looks at names, at what they may have been before, and at missing nodes that had their time. */
  take(names: PendingName[], expired: Iterable<TreeNode>): ObservationsTaken {
    const round = new Round(this, this.#tree, this.#touched);
    for (const name of names) round.add(name);
    for (const node of expired) round.addPlaceOf(node);
    round.follow();
    return round.finish();
  }

  /**
   * The device as the tree has it: 0 for the watched directory's own, because its number is another one after a
   * restart of the machine or on a copied disk.
   */
  #relative(facts: FileStat): FileStat {
    return { ...facts, dev: facts.dev === this.#root_dev ? 0 : facts.dev };
  }
}

type Place = 'there' | 'elsewhere' | 'hidden';

/** One round of looks: each directory on the way is looked at once before and once after. */
class Round {
  readonly #looker: Prober;
  readonly #tree: Tree;
  readonly #touched: PendingNames | null;
  readonly #places = new Map<TreeNode, Place>();
  readonly #looked = new Map<TreeNode, Map<string, Observation>>();
  readonly #looks: Observation[] = [];
  readonly #postponed: Observation[] = [];
  readonly #away = new Set<TreeNode>();

  constructor(looker: Prober, tree: Tree, touched: PendingNames | null = null) {
    this.#looker = looker;
    this.#tree = tree;
    this.#touched = touched;
  }

  place(dir: TreeNode): Place {
    const known = this.#places.get(dir);
    if (known) return known;
    const place = this.#look(dir);
    this.#places.set(dir, place);
    return place;
  }

  #look(dir: TreeNode): Place {
    if (!dir.parent) {
      const { state } = this.#looker.root();
      return state === 'there' || state === 'hidden' ? state : 'elsewhere';
    }
    const above = this.place(dir.parent);
    if (above !== 'there') return above;
    const result = this.#looker.lookAt(dir.parent, dir.name);
    if (result === 'hidden') return 'hidden';
    return result !== 'missing' && sameIdentity(dir, result) ? 'there' : 'elsewhere';
  }

  add(name: Observation): void {
    if (!name.dir.known) return;
    const place = this.place(name.dir);
    if (place === 'elsewhere') {
      this.#postponed.push(name);
      this.#findDisplaced(name.dir);
    } else if (place === 'there') {
      const result = this.#looker.lookAt(name.dir, name.name);
      if (result === 'hidden') return;
      name.facts = result === 'missing' ? null : result;
      this.#looks.push(name);
      const names = this.#looked.get(name.dir) ?? new Map<string, Observation>();
      this.#looked.set(name.dir, names.set(name.name, name));
    }
  }

  /** Has the place of a node looked at, if it can be. */
  addPlaceOf(node: TreeNode): void {
    const dir = node.parent;
    if (!dir || this.#looked.get(dir)?.has(node.name)) return;
    if (this.place(dir) !== 'there') {
      this.#findDisplaced(dir);
      return;
    }
    this.add(this.#touched?.pull(dir, node.name) ?? lookWithoutSignal(dir, node, this.#looker.now()));
  }

  /** Has the place looked at where the way to a directory breaks. */
  #findDisplaced(dir: TreeNode): void {
    let node = dir;
    while (node.parent && this.place(node.parent) !== 'there') node = node.parent;
    if (this.#away.has(node)) return;
    this.#away.add(node);
    this.addPlaceOf(node);
  }

  /** Looks at the former places of what is found, and at the names signalled right before, until there are no more. */
  follow(): void {
    for (let i = 0; i < this.#looks.length; i++) {
      const look = this.#looks[i] as Observation;
      const { facts, from } = look;
      if (facts === null) this.#pull(look.followers ?? []);
      if (facts === null) continue;
      const node = this.#tree.child(look.dir, look.name);
      if (node && sameIdentity(node, facts)) continue;
      for (const other of this.#tree.withIdentity(facts)) this.addPlaceOf(other);
      if (from) this.#pull([from.look]);
    }
  }

  /** Has names looked at before they are due. */
  #pull(names: Observation[]): void {
    for (const { dir, name } of names) {
      const touched = this.#touched?.pull(dir, name);
      if (touched) this.add(touched);
    }
  }

  finish(): ObservationsTaken {
    const after = new Round(this.#looker, this.#tree);
    const looks: Observation[] = [];
    const raced: Observation[] = [];
    for (const look of this.#looks) (after.place(look.dir) === 'there' ? looks : raced).push(look);
    return { looks, displaced: this.#displaced(looks), postponed: this.#postponed, raced };
  }

  #displaced(looks: Observation[]): Set<TreeNode> {
    const displaced = new Set<TreeNode>();
    for (const look of looks) {
      const occupant = this.#tree.child(look.dir, look.name);
      if (occupant && !(look.facts && sameIdentity(occupant, look.facts))) displaced.add(occupant);
      if (!look.facts) continue;
      for (const node of this.#tree.withIdentity(look.facts)) {
        if (node.parent && this.place(node.parent) === 'elsewhere') displaced.add(node);
      }
    }
    return displaced;
  }
}

function lookWithoutSignal(dir: TreeNode, node: TreeNode, now_ms: number): Observation {
  return {
    dir,
    name: node.name,
    facts: null,
    renames: 0,
    changed: false,
    from: null,
    first_from: null,
    followers: null,
    races: 0,
    happened_at_ms: node.missing_since_ms >= 0 ? node.missing_at_ms : now_ms,
  };
}
