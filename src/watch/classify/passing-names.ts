import { type FileStat, isFile } from '../index/file-stat.ts';
import type { TreeNode } from '../index/tree.ts';
import type { Observation, Step } from '../observation.ts';

/**
 * Names that nothing is known of and nothing is found at: they came and went, or were a step of a move. Both ends of
 * a move are signalled one right after the other, and of an unknown name every second signal is its going.
 */
export class PassingNames {
  readonly #names = new Set<Observation>();
  /** A passing name by the one that its first entry came from. */
  readonly #by_start = new Map<Observation, Observation>();
  /** How many signals of others each explains, as the temporary name that they had. */
  readonly #temporaries = new Map<Observation, number>();

  add(look: Observation): void {
    this.#names.add(look);
    // A known name that is gone had an odd number of signals.
    if (look.first_from && isOdd(look.first_from)) this.#by_start.set(look.first_from.look, look);
  }

  /** Those that explained nothing. */
  rest(): Iterable<Observation> {
    return this.#names;
  }

  /** The name over which a known node came to where it is now found. */
  takeWay(look: Observation, source: TreeNode): Observation | null {
    if (!look.from || isOdd(look.from)) return null;
    const way = look.from.look;
    const start = way.first_from;
    if (!start || !isOdd(start)) return null;
    if (start.look.dir !== source.parent || start.look.name !== source.name) return null;
    return this.#names.delete(way) ? way : null;
  }

  /** The name under which what was at a place was set aside before it was removed: an editor's backup. */
  takeAside(look: Observation): Observation | null {
    const aside = this.#by_start.get(look);
    return aside && !aside.changed && this.#names.delete(aside) ? aside : null;
  }

  /** The name that an unknown file had before it was moved to where it is found. */
  temporaryOf(look: Observation, facts: FileStat, is_known_place: boolean): Observation | null {
    if (!look.from || isOdd(look.from)) return null;
    const from = look.from.look;
    const used = this.#temporaries.get(from) ?? 0;
    const is_unknown = this.#names.has(from) || used > 0;
    if (!is_unknown || 2 * (used + look.renames) > from.renames) return null;
    // One signal where something was known is a move over it.
    if (is_known_place) return look.renames === 1 ? from : null;
    // Otherwise it may be a new file after another came and went: one that is written, or as old as its last change.
    const written_before = isFile(facts.mode) && facts.size > 0 && from.changed;
    return !look.changed && (written_before || facts.ctime > facts.mtime) ? from : null;
  }

  useTemporary(temporary: Observation, look: Observation): void {
    this.#names.delete(temporary);
    this.#temporaries.set(temporary, (this.#temporaries.get(temporary) ?? 0) + look.renames);
  }
}

function isOdd(step: Step): boolean {
  return step.renames % 2 === 1;
}
