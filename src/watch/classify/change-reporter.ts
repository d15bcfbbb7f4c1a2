import { accessDiffers, contentDiffers, type FileStat, isDirectory, isFile } from '../index/file-stat.ts';
import type { Tree } from '../index/tree.ts';
import type { TreeNode } from '../index/tree-node.ts';
import type { Classified, Observation } from '../observation.ts';
import { fileEvent } from './events.ts';

/**
 * Makes single changes: each method changes the tree and appends the events that lead there. What changed, and in
 * which order, is the classifier's decision. No I/O and no clock. Source: contract section 6.
 */
export class ChangeReporter {
  readonly #tree: Tree;
  readonly #racy_after_ms: number;
  readonly #out: Classified;

  /** `racy_after_ms`: see `ClassifierInput`. Results are appended to `out`. */
  constructor(tree: Tree, racy_after_ms: number, out: Classified) {
    this.#tree = tree;
    this.#racy_after_ms = racy_after_ms;
    this.#out = out;
  }

  /** Reports what differs in a node that is still at its place. */
  compare(node: TreeNode, stat: FileStat, observation: Observation): void {
    const content = contentDiffers(node, stat);
    const access = accessDiffers(node, stat);
    const unreported = node.unreported && observation.changed && !content && !access;
    if (content || access) this.#tree.update(node, stat);
    if (content || unreported) {
      this.#report('write', node, observation);
      this.#tree.setUnreported(node, stat.mtime >= this.#racy_after_ms);
    }
    if (content && stat.links > 1) {
      this.#out.also_changed.push(...this.#tree.withIdentity(stat).filter((other) => other !== node));
    }
    if (access) this.#report('chmod', node, observation);
  }

  /** Moves a node and reports the rename. `at_ms` is wall time. */
  rename(node: TreeNode, dir: TreeNode, name: string, at_ms: number): void {
    const old_path = this.#tree.path(node);
    this.#tree.move(node, dir, name);
    this.#out.events.push(fileEvent('rename', this.#tree.path(node), node.is_directory, at_ms, old_path));
  }

  /** Moves a known node to where it was observed, and reports what else differs. */
  move(source: TreeNode, stat: FileStat, observation: Observation): void {
    this.rename(source, observation.dir, observation.name, observation.happened_at_ms);
    source.missing_since_ms = -1;
    this.compare(source, stat, observation);
    if (source.is_directory) this.#out.moved.push(source);
  }

  /** Takes a moving file out of the tree without an event; returns the path that it leaves, for `arrive`. */
  detach(node: TreeNode): string {
    const left_path = this.#tree.path(node);
    this.#tree.remove(node);
    return left_path;
  }

  /** Reports the arrival of a file that was detached on its way. */
  arrive(left_path: string, stat: FileStat, observation: Observation): void {
    const node = this.#tree.add(observation.dir, observation.name, stat);
    const path = this.#tree.path(node);
    this.#out.events.push(fileEvent('rename', path, false, observation.happened_at_ms, left_path));
    if (!this.#tree.at(left_path)) return;
    // A consumer that applies the events has now moved the file that took the former place. Both must be read again.
    for (const unsure of [left_path, path]) {
      this.#out.events.push(fileEvent('create', unsure, false, observation.happened_at_ms));
    }
  }

  /** Adds a new node and reports it: as created, or as renamed from the temporary name that it had first. */
  create(stat: FileStat, observation: Observation, temporary: Observation | null): void {
    if (temporary) this.#createTemporary(temporary, stat);
    const node = this.#tree.add(observation.dir, observation.name, stat);
    const has_content = isFile(stat.mode) && stat.size > 0;
    const path = this.#tree.path(node);
    const at_ms = observation.happened_at_ms;
    if (temporary) {
      const old_path = this.#tree.childPath(temporary.dir, temporary.name);
      this.#out.events.push(fileEvent('rename', path, node.is_directory, at_ms, old_path));
    } else {
      this.#report('create', node, observation);
      if (has_content && observation.changed) this.#report('write', node, observation);
    }
    const is_reported = temporary?.changed || observation.changed;
    this.#tree.setUnreported(node, has_content && (!is_reported || stat.mtime >= this.#racy_after_ms));
    if (node.is_directory) this.#out.appeared.push(node);
  }

  /** Another file is at the place of a known one: reports what differs as changes of the known one. */
  overwrite(node: TreeNode, stat: FileStat, observation: Observation): void {
    const content = observation.renames === 1 || !isFile(stat.mode) || contentDiffers(node, stat);
    const access = accessDiffers(node, stat);
    this.#tree.update(node, stat);
    node.missing_since_ms = -1;
    this.#tree.setUnreported(node, stat.mtime >= this.#racy_after_ms);
    if (content) this.#report('write', node, observation);
    if (access) this.#report('chmod', node, observation);
  }

  /** Removes one node without children; without an event if `unreported`. `at_ms` is wall time. */
  remove(node: TreeNode, at_ms: number, unreported: boolean): void {
    const event = fileEvent('remove', this.#tree.path(node), node.is_directory, at_ms);
    if (!unreported) this.#out.events.push(event);
    if (node.is_directory) this.#out.gone.push(node);
    this.#tree.remove(node);
  }

  /** Reports a name that appeared and disappeared between two observations. */
  cameAndWent(observation: Observation): void {
    // The signal of its disappearance may still be under way.
    if (observation.renames === 1 && observation.races === 0) this.#out.raced.push(observation);
    if (observation.renames < 2) return;
    const path = this.#tree.childPath(observation.dir, observation.name);
    const writes = observation.changed ? (['write'] as const) : [];
    for (const operation of ['create', ...writes, 'remove'] as const) {
      this.#out.events.push(fileEvent(operation, path, false, observation.happened_at_ms));
    }
  }

  #createTemporary(temporary: Observation, stat: FileStat): void {
    const path = this.#tree.childPath(temporary.dir, temporary.name);
    const is_directory = isDirectory(stat.mode);
    this.#out.events.push(fileEvent('create', path, is_directory, temporary.happened_at_ms));
    if (temporary.changed && isFile(stat.mode) && stat.size > 0) {
      this.#out.events.push(fileEvent('write', path, is_directory, temporary.happened_at_ms));
    }
  }

  #report(operation: 'create' | 'write' | 'chmod', node: TreeNode, observation: Observation): void {
    const path = this.#tree.path(node);
    this.#out.events.push(fileEvent(operation, path, node.is_directory, observation.happened_at_ms));
  }
}
