import { type FileStat, isFile } from '../index/file-stat.ts';
import type { TreeNode } from '../index/tree-node.ts';
import type { MoveOrigin, Observation } from '../observation.ts';

/**
 * Unknown names at which nothing was found: they came and went, or were a step of a move. It relies on two facts: the
 * kernel signals both ends of a move in direct succession, and every second signal of an unknown name is its removal.
 */
export class PassingNames {
  readonly #names = new Set<Observation>();
  /** A passing name by the one from which its first entry was moved. */
  readonly #by_start = new Map<Observation, Observation>();
  /** How many signals of arrivals each name explains as their temporary name. */
  readonly #temporaries = new Map<Observation, number>();

  /** Adds an unknown name at which nothing was found. */
  add(observation: Observation): void {
    this.#names.add(observation);
    // A known name that is gone had an odd number of signals.
    if (observation.first_from && isOdd(observation.first_from))
      this.#by_start.set(observation.first_from.observation, observation);
  }

  /** The names that explained no other observation. */
  rest(): Iterable<Observation> {
    return this.#names;
  }

  /** Takes the intermediate name by way of which a known node moved to where it was observed. */
  takeWay(observation: Observation, source: TreeNode): Observation | null {
    if (!observation.from || isOdd(observation.from)) return null;
    const way = observation.from.observation;
    const start = way.first_from;
    if (!start || !isOdd(start)) return null;
    if (start.observation.dir !== source.parent || start.observation.name !== source.name) return null;
    return this.#names.delete(way) ? way : null;
  }

  /** Takes the name to which the former file of a place was moved before it was removed: an editor's backup. */
  takeAside(observation: Observation): Observation | null {
    const aside = this.#by_start.get(observation);
    return aside && !aside.changed && this.#names.delete(aside) ? aside : null;
  }

  /** The name that an unknown file had before it was moved to where it was observed. */
  temporaryOf(observation: Observation, stat: FileStat, is_known_place: boolean): Observation | null {
    if (!observation.from || isOdd(observation.from)) return null;
    const from = observation.from.observation;
    const used = this.#temporaries.get(from) ?? 0;
    const is_unknown = this.#names.has(from) || used > 0;
    if (!is_unknown || 2 * (used + observation.renames) > from.renames) return null;
    // A single signal at a known place is a move over it.
    if (is_known_place) return observation.renames === 1 ? from : null;
    // Otherwise it may be new, created after the other came and went: then it was written, or its ctime is its mtime.
    const written_before = isFile(stat.mode) && stat.size > 0 && from.changed;
    return !observation.changed && (written_before || stat.ctime > stat.mtime) ? from : null;
  }

  /** Marks a temporary name as the explanation of an arrival. */
  useTemporary(temporary: Observation, observation: Observation): void {
    this.#names.delete(temporary);
    this.#temporaries.set(temporary, (this.#temporaries.get(temporary) ?? 0) + observation.renames);
  }
}

function isOdd(step: MoveOrigin): boolean {
  return step.renames % 2 === 1;
}
