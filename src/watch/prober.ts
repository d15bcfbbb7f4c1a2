import type { Clock } from '../base/clock.ts';
import type { Disk } from './disk.ts';
import { type FileStat, isDirectory, type ProbeResult, sameIdentity } from './index/file-stat.ts';
import type { Tree } from './index/tree.ts';
import type { TreeNode } from './index/tree-node.ts';
import { type Observation, observationWithoutSignal } from './observation.ts';
import type { RemoteMounts } from './remote-mounts.ts';
import type { RootGate } from './root-gate.ts';
import type { PendingName, PendingNames } from './signals/pending-names.ts';

/** The state of the watched directory itself. `replaced`: another directory is in its place. `hidden`: cannot be seen. */
export type RootState = 'there' | 'missing' | 'replaced' | 'hidden';

/** The result of one round of probes. */
export interface ProbeRoundResult {
  observations: Observation[];
  /** Known nodes that are certainly no longer at their place. */
  displaced: Set<TreeNode>;
  /** Names in directories that are not at their place: to be observed when those reappear or count as gone. */
  postponed: Observation[];
  /** Names in directories that moved during the round. */
  raced: Observation[];
}

/** Probes names on the disk, and only in directories that are where the tree has them. */
export class Prober {
  readonly #tree: Tree;
  readonly #pending: PendingNames;
  readonly #clock: Clock;
  readonly #disk: Disk;
  readonly #gate: RootGate;
  readonly #mounts: RemoteMounts;
  /** Pseudo file systems below the watched directory: their names by path. They count as hidden. */
  readonly pseudo = new Map<string, string>();
  #root_dev = 0;

  constructor(
    tree: Tree,
    pending: PendingNames,
    clock: Clock,
    disk: Disk,
    gate: RootGate,
    mounts: RemoteMounts,
  ) {
    this.#tree = tree;
    this.#pending = pending;
    this.#clock = clock;
    this.#disk = disk;
    this.#gate = gate;
    this.#mounts = mounts;
  }

  /** Probes the watched directory. `stat` is null unless there is one that is accepted. */
  probeRoot(): { state: RootState; stat: FileStat | null } {
    const root = this.#tree.root;
    const result = this.#disk.probe(root.name, true);
    if (result === 'hidden') return { state: 'hidden', stat: null };
    const found = result !== 'missing' && isDirectory(result.mode) ? result : null;
    if (!this.#gate.accepts(found) || !found) return { state: 'missing', stat: null };
    this.#root_dev = found.dev;
    this.#mounts.noteRoot(found.dev);
    if (this.#mounts.isAside(0)) return { state: 'hidden', stat: null };
    const stat = this.#relative(found);
    return { state: sameIdentity(root, stat) ? 'there' : 'replaced', stat };
  }

  /** Probes one name by its path, without checking the directories above it. */
  probe(dir: TreeNode, name: string): ProbeResult {
    const path = this.#tree.childPath(dir, name);
    const result = this.#disk.probe(path);
    if (this.pseudo.size > 0) this.pseudo.delete(path);
    if (typeof result === 'string') return result;
    const stat = this.#relative(result);
    return isDirectory(stat.mode) && stat.dev !== dir.dev && this.#isLeftOut(path, stat.dev)
      ? 'hidden'
      : stat;
  }

  /** Called only for mount points: everything else is on the file system of its parent directory. */
  #isLeftOut(path: string, dev: number): boolean {
    if (this.#mounts.isAside(dev)) return true;
    const on = this.#disk.fileSystem(path);
    if (on?.kind !== 'pseudo') return false;
    this.pseudo.set(path, on.name);
    return true;
  }

  /** The wall time, in ms. */
  now(): number {
    return this.#clock.wallMs();
  }

  /** Returns a function that checks whether a directory is where the tree has it; each directory is probed once. */
  places(): (dir: TreeNode) => boolean {
    const round = new ProbeRound(this, this.#tree);
    return (dir) => round.place(dir) === 'there';
  }

  /** Observes names, the places from which they may have moved, and the places of expired nodes. */
  observe(names: PendingName[], expired: Iterable<TreeNode>): ProbeRoundResult {
    const round = new ProbeRound(this, this.#tree, this.#pending);
    for (const name of names) round.add(name);
    for (const node of expired) round.addPlaceOf(node);
    round.follow();
    return round.finish();
  }

  /**
   * Replaces the device number of the watched directory by 0, as the tree has it: the number changes with a restart of
   * the machine or on a copied disk.
   */
  #relative(stat: FileStat): FileStat {
    return { ...stat, dev: stat.dev === this.#root_dev ? 0 : stat.dev };
  }
}

type Place = 'there' | 'elsewhere' | 'hidden';

/** One round of probes. Each directory on the way to a name is probed once before and once after the names. */
class ProbeRound {
  readonly #prober: Prober;
  readonly #tree: Tree;
  readonly #pending: PendingNames | null;
  readonly #places = new Map<TreeNode, Place>();
  readonly #by_dir = new Map<TreeNode, Map<string, Observation>>();
  readonly #observations: Observation[] = [];
  readonly #postponed: Observation[] = [];
  readonly #away = new Set<TreeNode>();

  constructor(prober: Prober, tree: Tree, pending: PendingNames | null = null) {
    this.#prober = prober;
    this.#tree = tree;
    this.#pending = pending;
  }

  place(dir: TreeNode): Place {
    const known = this.#places.get(dir);
    if (known) return known;
    const place = this.#locate(dir);
    this.#places.set(dir, place);
    return place;
  }

  #locate(dir: TreeNode): Place {
    if (!dir.parent) {
      const { state } = this.#prober.probeRoot();
      return state === 'there' || state === 'hidden' ? state : 'elsewhere';
    }
    const above = this.place(dir.parent);
    if (above !== 'there') return above;
    const result = this.#prober.probe(dir.parent, dir.name);
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
      const result = this.#prober.probe(name.dir, name.name);
      if (result === 'hidden') return;
      name.stat = result === 'missing' ? null : result;
      this.#observations.push(name);
      const names = this.#by_dir.get(name.dir) ?? new Map<string, Observation>();
      this.#by_dir.set(name.dir, names.set(name.name, name));
    }
  }

  /** Observes the place of a node, if its directory is at its place. */
  addPlaceOf(node: TreeNode): void {
    const dir = node.parent;
    if (!dir || this.#by_dir.get(dir)?.has(node.name)) return;
    if (this.place(dir) !== 'there') {
      this.#findDisplaced(dir);
      return;
    }
    this.add(this.#pending?.pull(dir, node.name) ?? observationWithoutSignal(dir, node, this.#prober.now()));
  }

  /** Observes the place of the topmost displaced directory on the path to `dir`. */
  #findDisplaced(dir: TreeNode): void {
    let node = dir;
    while (node.parent && this.place(node.parent) !== 'there') node = node.parent;
    if (this.#away.has(node)) return;
    this.#away.add(node);
    this.addPlaceOf(node);
  }

  /** Observes the former places of what was found, and the names signalled right before, until there are no more. */
  follow(): void {
    for (let i = 0; i < this.#observations.length; i++) {
      const observation = this.#observations[i] as Observation;
      const { stat, from } = observation;
      if (stat === null) this.#pull(observation.followers ?? []);
      if (stat === null) continue;
      const node = this.#tree.child(observation.dir, observation.name);
      if (node && sameIdentity(node, stat)) continue;
      for (const other of this.#tree.withIdentity(stat)) this.addPlaceOf(other);
      if (from) this.#pull([from.observation]);
    }
  }

  /** Observes names before they are due. */
  #pull(names: Observation[]): void {
    for (const { dir, name } of names) {
      const pending = this.#pending?.pull(dir, name);
      if (pending) this.add(pending);
    }
  }

  finish(): ProbeRoundResult {
    const after = new ProbeRound(this.#prober, this.#tree);
    const observations: Observation[] = [];
    const raced: Observation[] = [];
    for (const observation of this.#observations)
      (after.place(observation.dir) === 'there' ? observations : raced).push(observation);
    return { observations, displaced: this.#displaced(observations), postponed: this.#postponed, raced };
  }

  #displaced(observations: Observation[]): Set<TreeNode> {
    const displaced = new Set<TreeNode>();
    for (const observation of observations) {
      const occupant = this.#tree.child(observation.dir, observation.name);
      if (occupant && !(observation.stat && sameIdentity(occupant, observation.stat)))
        displaced.add(occupant);
      if (!observation.stat) continue;
      for (const node of this.#tree.withIdentity(observation.stat)) {
        if (node.parent && this.place(node.parent) === 'elsewhere') displaced.add(node);
      }
    }
    return displaced;
  }
}
