import {
  accessDiffers,
  contentDiffers,
  type FileStat,
  isDirectory,
  isFile,
  sameIdentity,
} from '../index/file-stat.ts';
import { RACES_MAX } from '../index/limits.ts';
import { descendants, type Tree, type TreeNode } from '../index/tree.ts';
import type { Classified, ClassifierInput, Observation } from '../observation.ts';
import { fileEvent } from './events.ts';
import { PassingNames } from './passing-names.ts';

/** Something found at a place where it was not known. */
interface Arrival {
  look: Observation;
  facts: FileStat;
  /** The known node that it is, where it moved. */
  source: TreeNode | null;
  /** The path it left without having arrived, where its place had to be cleared first. */
  left_path: string | null;
  /** The name that it had before it was moved here, where nothing was known of it: signalled right before, and gone. */
  temporary: Observation | null;
  /** What was at its place and was set aside under a name that is gone again. */
  aside: TreeNode | null;
  state: 'open' | 'placing' | 'done';
}

/**
 * The classifier: from the last known tree and what was seen, the events that lead from the one to the other, each
 * true when they are applied in order. Changes the tree; no I/O and no clock. Source: contract section 6.
 */
export function settle(tree: Tree, input: ClassifierInput): Classified {
  return new Classifier(tree, input).run();
}

class Classifier {
  readonly #tree: Tree;
  readonly #input: ClassifierInput;
  readonly #out: Classified = {
    events: [],
    appeared: [],
    moved: [],
    gone: [],
    missing: [],
    waiting: [],
    raced: [],
    also_changed: [],
  };
  readonly #passing = new PassingNames();
  readonly #moves = new Map<TreeNode, Arrival>();

  constructor(tree: Tree, input: ClassifierInput) {
    this.#tree = tree;
    this.#input = input;
  }

  run(): Classified {
    const stays: (() => void)[] = [];
    const absent: (() => void)[] = [];
    const arrivals: Arrival[] = [];
    for (const look of this.#input.looks) {
      const node = this.#tree.child(look.dir, look.name);
      const { facts } = look;
      if (facts === null) {
        if (node) absent.push(() => this.#absent(node, look));
        else this.#passing.add(look);
      } else if (node && sameIdentity(node, facts)) {
        stays.push(() => this.#stay(node, facts, look));
      } else {
        arrivals.push({
          look,
          facts,
          source: null,
          left_path: null,
          temporary: null,
          aside: null,
          state: 'open',
        });
      }
    }
    for (const arrival of arrivals) this.#findSource(arrival);
    for (const stay of stays) stay();
    for (const arrival of arrivals) this.#place(arrival);
    for (const note of absent) note();
    for (const node of this.#input.expired) {
      if (node.known && node.missing_since_ms >= 0) this.#remove(node, node.missing_at_ms);
    }
    for (const look of this.#passing.rest()) this.#cameAndWent(look);
    return this.#out;
  }

  /** Finds the known node that an arrival is. One that is still at its place moved between two looks. */
  #findSource(arrival: Arrival): void {
    const { facts, look } = arrival;
    const candidates = this.#tree.withIdentity(facts);
    const source = candidates.find((node) => this.#input.displaced.has(node) && !this.#moves.has(node));
    if (source) {
      arrival.source = source;
      this.#moves.set(source, arrival);
      return;
    }
    const can_be_twice = !isDirectory(facts.mode) && facts.links > 1;
    if (candidates.length > 0 && !can_be_twice && look.races < RACES_MAX) {
      this.#out.raced.push(look);
      arrival.state = 'done';
    }
  }

  #stay(node: TreeNode, facts: FileStat, look: Observation): void {
    node.missing_since_ms = -1;
    this.#compare(node, facts, look);
  }

  /** Reports what differs in a known node. */
  #compare(node: TreeNode, facts: FileStat, look: Observation): void {
    const content = contentDiffers(node, facts);
    const access = accessDiffers(node, facts);
    const untold = node.untold && look.changed && !content && !access;
    if (content || access) this.#tree.update(node, facts);
    if (content || untold) {
      this.#tell('write', node, look);
      this.#tree.setUntold(node, facts.mtime >= this.#input.racy_after_ms);
    }
    if (content && facts.links > 1) {
      this.#out.also_changed.push(...this.#tree.withIdentity(facts).filter((other) => other !== node));
    }
    if (access) this.#tell('chmod', node, look);
  }

  #tell(operation: 'create' | 'write' | 'remove' | 'chmod', node: TreeNode, look: Observation): void {
    const path = this.#tree.path(node);
    this.#out.events.push(fileEvent(operation, path, node.is_directory, look.happened_at_ms));
  }

  /** Tells of a rename and makes it in the tree. */
  #rename(node: TreeNode, dir: TreeNode, name: string, at_ms: number): void {
    const old_path = this.#tree.path(node);
    this.#tree.move(node, dir, name);
    this.#out.events.push(fileEvent('rename', this.#tree.path(node), node.is_directory, at_ms, old_path));
  }

  #place(arrival: Arrival): void {
    if (arrival.state !== 'open') return;
    arrival.state = 'placing';
    this.#goByWay(arrival);
    if (!arrival.source) {
      const is_known = this.#tree.child(arrival.look.dir, arrival.look.name) !== undefined;
      arrival.temporary = this.#passing.temporaryOf(arrival.look, arrival.facts, is_known);
    }
    if (this.#makeRoom(arrival) && !this.#isDone(arrival)) this.#enter(arrival);
    arrival.state = 'done';
  }

  /** Tells of an arrival whose place is free. */
  #enter(arrival: Arrival): void {
    arrival.state = 'done';
    if (arrival.left_path !== null) this.#arrive(arrival, arrival.left_path);
    else if (arrival.source) this.#move(arrival, arrival.source);
    else this.#create(arrival);
    if (arrival.aside) this.#remove(arrival.aside, arrival.look.happened_at_ms);
  }

  /** Whether an arrival entered while room was made for it: what stood in its way had gone by another. */
  #isDone(arrival: Arrival): boolean {
    return arrival.state === 'done';
  }

  /** A move over a name that came and went in between is told as the two moves it was. */
  #goByWay({ look, source }: Arrival): void {
    const way = source && this.#passing.takeWay(look, source);
    if (way) this.#rename(source, way.dir, way.name, way.happened_at_ms);
  }

  /** Clears the place of an arrival; false where the arrival is told otherwise or has to wait. */
  #makeRoom(arrival: Arrival): boolean {
    const { look } = arrival;
    const occupant = this.#tree.child(look.dir, look.name);
    const onward = occupant && this.#moves.get(occupant);
    if (occupant && onward?.state === 'open') this.#place(onward);
    else if (occupant && onward?.state === 'placing') this.#onwardFirst(occupant, onward, arrival);
    if (this.#isDone(arrival)) return false;
    const left = this.#tree.child(look.dir, look.name);
    if (!left) return true;
    if (arrival.source || arrival.left_path !== null || arrival.temporary) {
      return this.#clear(left, look, true);
    }
    return this.#replace(left, arrival);
  }

  /** Something that is on its way, and was asked to make room, goes on: its place may be free by now. */
  #onwardFirst(node: TreeNode, onward: Arrival, last: Arrival): void {
    if (this.#tree.child(onward.look.dir, onward.look.name)) this.#breakCycle(node, onward, last);
    else this.#enter(onward);
  }

  /**
   * Files that changed places without a name in between: the first leaves untold and arrives when its place is
   * free. With directories that would take what is below them along, so the first is told as removed and new.
   */
  #breakCycle(first: TreeNode, onward: Arrival, last: Arrival): void {
    if (first.is_directory || last.source?.is_directory) {
      this.#remove(first, onward.look.happened_at_ms);
      if (!first.known) onward.source = null;
    } else {
      this.#detach(first, onward);
    }
  }

  /** Takes a moving file out of the tree before its arrival can be told. */
  #detach(node: TreeNode, arrival: Arrival): void {
    arrival.left_path = this.#tree.path(node);
    this.#tree.remove(node);
  }

  /** Tells of the arrival of a file that was taken out of the tree on its way. */
  #arrive({ look, facts }: Arrival, left_path: string): void {
    const node = this.#tree.add(look.dir, look.name, facts);
    const path = this.#tree.path(node);
    this.#out.events.push(fileEvent('rename', path, false, look.happened_at_ms, left_path));
    if (!this.#tree.at(left_path)) return;
    // Whoever follows the events moved here what had taken its former place: both have to be looked at anew.
    for (const unsure of [left_path, path]) {
      this.#out.events.push(fileEvent('create', unsure, false, look.happened_at_ms));
    }
  }

  #move({ look, facts }: Arrival, source: TreeNode): void {
    this.#rename(source, look.dir, look.name, look.happened_at_ms);
    source.missing_since_ms = -1;
    this.#compare(source, facts, look);
    if (source.is_directory) this.#out.moved.push(source);
  }

  #create(arrival: Arrival): void {
    const { look, facts, temporary } = arrival;
    if (temporary) this.#fromTemporary(temporary, look, facts);
    const node = this.#tree.add(look.dir, look.name, facts);
    const has_content = isFile(facts.mode) && facts.size > 0;
    const path = this.#tree.path(node);
    if (temporary) {
      const old_path = this.#tree.childPath(temporary.dir, temporary.name);
      this.#out.events.push(fileEvent('rename', path, node.is_directory, look.happened_at_ms, old_path));
    } else {
      this.#tell('create', node, look);
      if (has_content && look.changed) this.#tell('write', node, look);
    }
    const told = temporary?.changed || look.changed;
    this.#tree.setUntold(node, has_content && (!told || facts.mtime >= this.#input.racy_after_ms));
    if (node.is_directory) this.#out.appeared.push(node);
  }

  #fromTemporary(temporary: Observation, look: Observation, facts: FileStat): void {
    this.#passing.useTemporary(temporary, look);
    const path = this.#tree.childPath(temporary.dir, temporary.name);
    const directory = isDirectory(facts.mode);
    this.#out.events.push(fileEvent('create', path, directory, temporary.happened_at_ms));
    if (temporary.changed && isFile(facts.mode) && facts.size > 0) {
      this.#out.events.push(fileEvent('write', path, directory, temporary.happened_at_ms));
    }
  }

  /** Something new is where a known file was, and nothing says how it came there. */
  #replace(occupant: TreeNode, arrival: Arrival): boolean {
    const { look, facts } = arrival;
    const aside = this.#passing.takeAside(look);
    if (aside) {
      this.#rename(occupant, aside.dir, aside.name, look.happened_at_ms);
      arrival.aside = occupant;
      return true;
    }
    const expired = this.#input.expired.has(occupant);
    const both_files = !occupant.is_directory && !isDirectory(facts.mode);
    // One signal alone is a move over it from outside; an unlink and a create would be two.
    if (both_files && (look.renames === 1 || (expired && look.renames === 0))) {
      this.#overwrite(occupant, look, facts);
      return false;
    }
    if (expired) return this.#clear(occupant, look, false);
    this.#missing(occupant, look);
    this.#out.waiting.push(look);
    return false;
  }

  /** Another file is at the same place: its content is what changed. */
  #overwrite(node: TreeNode, look: Observation, facts: FileStat): void {
    const content = look.renames === 1 || !isFile(facts.mode) || contentDiffers(node, facts);
    const access = accessDiffers(node, facts);
    this.#tree.update(node, facts);
    node.missing_since_ms = -1;
    this.#tree.setUntold(node, facts.mtime >= this.#input.racy_after_ms);
    if (content) this.#tell('write', node, look);
    if (access) this.#tell('chmod', node, look);
  }

  /** Removes what is at a place, untold where a rename over it says so; false where not all could be told yet. */
  #clear(occupant: TreeNode, look: Observation, replaced: boolean): boolean {
    if (this.#remove(occupant, look.happened_at_ms, replaced)) return true;
    this.#missing(occupant, look);
    this.#out.waiting.push(look);
    return false;
  }

  /** Removes a node and all below it, children first; false where the events of one settling did not suffice. */
  #remove(node: TreeNode, at_ms: number, untold = false): boolean {
    for (const below of descendants(node)) {
      const move = this.#moves.get(below);
      if (move?.state === 'open') this.#place(move);
      else if (move?.state === 'placing' && !below.is_directory) this.#detach(below, move);
      if (!below.known || !this.#isBelow(below, node)) continue;
      if (below.children || this.#out.events.length >= this.#input.events_max) return false;
      this.#removeOne(below, at_ms, false);
    }
    if (node.children) return false;
    this.#removeOne(node, at_ms, untold);
    return true;
  }

  #removeOne(node: TreeNode, at_ms: number, untold: boolean): void {
    const event = fileEvent('remove', this.#tree.path(node), node.is_directory, at_ms);
    if (!untold) this.#out.events.push(event);
    if (node.is_directory) this.#out.gone.push(node);
    this.#tree.remove(node);
  }

  #isBelow(node: TreeNode, top: TreeNode): boolean {
    for (let up = node.parent; up; up = up.parent) if (up === top) return true;
    return false;
  }

  #absent(node: TreeNode, look: Observation): void {
    if (node.known && this.#tree.child(look.dir, look.name) === node) this.#missing(node, look);
  }

  #missing(node: TreeNode, look: Observation): void {
    if (node.missing_since_ms >= 0) return;
    node.missing_at_ms = look.happened_at_ms;
    this.#out.missing.push(node);
  }

  /** A name that appeared and went between two looks. */
  #cameAndWent(look: Observation): void {
    // The signal of its going may be under way.
    if (look.renames === 1 && look.races === 0) this.#out.raced.push(look);
    if (look.renames < 2) return;
    const path = this.#tree.childPath(look.dir, look.name);
    for (const operation of ['create', ...(look.changed ? (['write'] as const) : []), 'remove'] as const) {
      this.#out.events.push(fileEvent(operation, path, false, look.happened_at_ms));
    }
  }
}
