import { type FileStat, isDirectory, sameIdentity } from '../index/file-stat.ts';
import { RACES_MAX } from '../index/limits.ts';
import type { Tree } from '../index/tree.ts';
import { descendants, type TreeNode } from '../index/tree-node.ts';
import type { Classified, ClassifierInput, Observation } from '../observation.ts';
import type { Arrival } from './arrival.ts';
import { ChangeReporter } from './change-reporter.ts';
import { PassingNames } from './passing-names.ts';

/**
 * The classifier. From the last known tree and a set of observations it derives the events that lead from one to the
 * other, such that each event is true when they are applied in order. Changes the tree; no I/O and no clock.
 * Source: contract section 6.
 */
export function classify(tree: Tree, input: ClassifierInput): Classified {
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
  readonly #changes: ChangeReporter;
  readonly #passing = new PassingNames();
  readonly #moves = new Map<TreeNode, Arrival>();

  constructor(tree: Tree, input: ClassifierInput) {
    this.#tree = tree;
    this.#input = input;
    this.#changes = new ChangeReporter(tree, input.racy_after_ms, this.#out);
  }

  run(): Classified {
    const stays: (() => void)[] = [];
    const absent: (() => void)[] = [];
    const arrivals: Arrival[] = [];
    for (const observation of this.#input.observations) {
      const node = this.#tree.child(observation.dir, observation.name);
      const { stat } = observation;
      if (stat === null) {
        if (node) absent.push(() => this.#absent(node, observation));
        else this.#passing.add(observation);
      } else if (node && sameIdentity(node, stat)) {
        stays.push(() => this.#stay(node, stat, observation));
      } else {
        arrivals.push({
          observation,
          stat,
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
    for (const observation of this.#passing.rest()) this.#changes.cameAndWent(observation);
    return this.#out;
  }

  /** Finds the known node that an arrival is. If that is still at its place, it moved between two observations. */
  #findSource(arrival: Arrival): void {
    const { stat, observation } = arrival;
    const candidates = this.#tree.withIdentity(stat);
    const source = candidates.find((node) => this.#input.displaced.has(node) && !this.#moves.has(node));
    if (source) {
      arrival.source = source;
      this.#moves.set(source, arrival);
      return;
    }
    const can_be_twice = !isDirectory(stat.mode) && stat.links > 1;
    if (candidates.length > 0 && !can_be_twice && observation.races < RACES_MAX) {
      this.#out.raced.push(observation);
      arrival.state = 'done';
    }
  }

  #stay(node: TreeNode, stat: FileStat, observation: Observation): void {
    node.missing_since_ms = -1;
    this.#changes.compare(node, stat, observation);
  }

  #place(arrival: Arrival): void {
    if (arrival.state !== 'open') return;
    arrival.state = 'placing';
    this.#followWay(arrival);
    if (!arrival.source) {
      const { observation, stat } = arrival;
      const is_known = this.#tree.child(observation.dir, observation.name) !== undefined;
      arrival.temporary = this.#passing.temporaryOf(observation, stat, is_known);
    }
    if (this.#makeRoom(arrival) && !this.#isDone(arrival)) this.#enter(arrival);
    arrival.state = 'done';
  }

  /** Reports an arrival whose place is free. */
  #enter(arrival: Arrival): void {
    arrival.state = 'done';
    const { observation, stat, source, left_path, temporary, aside } = arrival;
    if (left_path !== null) {
      this.#changes.arrive(left_path, stat, observation);
    } else if (source) {
      this.#changes.move(source, stat, observation);
    } else {
      if (temporary) this.#passing.useTemporary(temporary, observation);
      this.#changes.create(stat, observation, temporary);
    }
    if (aside) this.#remove(aside, observation.happened_at_ms);
  }

  /** Whether an arrival entered while its place was being cleared, because its occupant left by another way. */
  #isDone(arrival: Arrival): boolean {
    return arrival.state === 'done';
  }

  /** Reports a move by way of a name that came and went as the two moves that it was. */
  #followWay({ observation, source }: Arrival): void {
    const way = source && this.#passing.takeWay(observation, source);
    if (way) this.#changes.rename(source, way.dir, way.name, way.happened_at_ms);
  }

  /** Clears the place of an arrival; false if the arrival was reported otherwise or has to wait. */
  #makeRoom(arrival: Arrival): boolean {
    const { observation } = arrival;
    const occupant = this.#tree.child(observation.dir, observation.name);
    const onward = occupant && this.#moves.get(occupant);
    if (occupant && onward?.state === 'open') this.#place(onward);
    else if (occupant && onward?.state === 'placing') this.#placeOnward(occupant, onward, arrival);
    if (this.#isDone(arrival)) return false;
    const left = this.#tree.child(observation.dir, observation.name);
    if (!left) return true;
    if (arrival.source || arrival.left_path !== null || arrival.temporary) {
      return this.#clear(left, observation, true);
    }
    return this.#replace(left, arrival);
  }

  /** The occupant is itself being placed, so the arrivals form a circle: enters if its new place is free by now. */
  #placeOnward(node: TreeNode, onward: Arrival, last: Arrival): void {
    const { dir, name } = onward.observation;
    if (this.#tree.child(dir, name)) this.#breakCycle(node, onward, last);
    else this.#enter(onward);
  }

  /**
   * Files that changed places without an intermediate name: the first one leaves without an event, and arrives when
   * its place is free. A directory would take its contents along, so it is reported as removed and created instead.
   */
  #breakCycle(first: TreeNode, onward: Arrival, last: Arrival): void {
    if (first.is_directory || last.source?.is_directory) {
      this.#remove(first, onward.observation.happened_at_ms);
      if (!first.known) onward.source = null;
    } else {
      onward.left_path = this.#changes.detach(first);
    }
  }

  /** Something new is in the place of a known file, and no observation shows where it came from. */
  #replace(occupant: TreeNode, arrival: Arrival): boolean {
    const { observation, stat } = arrival;
    const aside = this.#passing.takeAside(observation);
    if (aside) {
      this.#changes.rename(occupant, aside.dir, aside.name, observation.happened_at_ms);
      arrival.aside = occupant;
      return true;
    }
    const expired = this.#input.expired.has(occupant);
    const both_files = !occupant.is_directory && !isDirectory(stat.mode);
    // A single signal is a move over it from outside the tree; an unlink and a create would be two.
    if (both_files && (observation.renames === 1 || (expired && observation.renames === 0))) {
      this.#changes.overwrite(occupant, stat, observation);
      return false;
    }
    if (expired) return this.#clear(occupant, observation, false);
    this.#missing(occupant, observation);
    this.#out.waiting.push(observation);
    return false;
  }

  /** Removes an occupant, without an event if a rename over it implies that; false if not all fitted into this pass. */
  #clear(occupant: TreeNode, observation: Observation, replaced: boolean): boolean {
    if (this.#remove(occupant, observation.happened_at_ms, replaced)) return true;
    this.#missing(occupant, observation);
    this.#out.waiting.push(observation);
    return false;
  }

  /** Removes a node and everything below it, children first; false if `events_max` was reached before the end. */
  #remove(node: TreeNode, at_ms: number, unreported = false): boolean {
    for (const below of descendants(node)) {
      const move = this.#moves.get(below);
      if (move?.state === 'open') this.#place(move);
      else if (move?.state === 'placing' && !below.is_directory) move.left_path = this.#changes.detach(below);
      if (!below.known || !this.#isBelow(below, node)) continue;
      if (below.children || this.#out.events.length >= this.#input.events_max) return false;
      this.#changes.remove(below, at_ms, false);
    }
    if (node.children) return false;
    this.#changes.remove(node, at_ms, unreported);
    return true;
  }

  #isBelow(node: TreeNode, top: TreeNode): boolean {
    for (let up = node.parent; up; up = up.parent) if (up === top) return true;
    return false;
  }

  #absent(node: TreeNode, observation: Observation): void {
    const is_in_place = this.#tree.child(observation.dir, observation.name) === node;
    if (node.known && is_in_place) this.#missing(node, observation);
  }

  #missing(node: TreeNode, observation: Observation): void {
    if (node.missing_since_ms >= 0) return;
    node.missing_at_ms = observation.happened_at_ms;
    this.#out.missing.push(node);
  }
}
