import type { Clock } from '../../../base/clock.ts';
import { type Account, findAccount } from '../../../base/linux/accounts.ts';

/** How long an account is reused, in ms: each look takes a process. */
const KEEP_MS = 2_000;
/** More accounts than are asked for in that time. */
const KEPT_MAX = 100;

/** Accounts by name or number; those that were found are kept for a moment. */
export class AccountLookup {
  readonly #clock: Clock;
  readonly #known = new Map<string, Account>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Null if there is none. Throws `unavailable` if the accounts cannot be read in time. */
  async find(name_or_uid: string): Promise<Account | null> {
    const known = this.#known.get(name_or_uid);
    if (known) return known;
    const found = await findAccount(name_or_uid);
    if (found && this.#known.size < KEPT_MAX) {
      this.#known.set(name_or_uid, found);
      this.#clock.after(KEEP_MS, () => this.#known.delete(name_or_uid));
    }
    return found;
  }
}
