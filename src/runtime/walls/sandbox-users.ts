import { kernelRandom } from '../../base/entropy.ts';
import type { LocalRecord } from '../local/sandbox-files.ts';

/** The first user id for sandboxes: from here on systemd's list of ranges has nobody (up to 2³¹). */
export const FIRST_USER = 1_879_048_192;
/** How many user ids there are for sandboxes. */
export const USER_COUNT = 2 ** 27;

/** A user id that nobody has: random in the range, so that two managers need no agreement, and not one of `taken`. */
export function pickUser(taken: ReadonlySet<number>): number {
  for (;;) {
    const user = FIRST_USER + (kernelRandom(4).readUInt32LE() % USER_COUNT);
    if (!taken.has(user)) return user;
  }
}

/** The users of a runtime's sandboxes. */
export class SandboxUsers {
  readonly #isolation: { hasUsers(): boolean };
  readonly #records: () => (LocalRecord | null)[];

  /** `records` are those of the sandboxes there are. */
  constructor(isolation: { hasUsers(): boolean }, records: () => (LocalRecord | null)[]) {
    this.#isolation = isolation;
    this.#records = records;
  }

  /** A user for a new sandbox; null where sandboxes run as the manager's. */
  pick(): number | null {
    if (!this.#isolation.hasUsers()) return null;
    return pickUser(new Set(this.#records().flatMap((record) => record?.user ?? [])));
  }
}
