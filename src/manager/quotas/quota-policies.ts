import type { Clock } from '../../base/clock.ts';
import type { Dimension } from '../../contract/quotas.ts';
import type { Queries } from '../database/database.ts';
import type { HeldPolicy, QuotaStore } from './quota-store.ts';

/** What another replica changes is found within 5 s. */
const AGE_MAX_MS = 4_000;
const TEAMS_MAX = 10_000;

type Policies = ReadonlyMap<Dimension, HeldPolicy>;

/** Policies by team, as they were a moment ago; what this replica changes it knows at once. */
export class QuotaPolicies {
  readonly #store: QuotaStore;
  readonly #clock: Clock;
  readonly #known = new Map<string, { policies: Policies; read_ms: number }>();
  /** Goes up with every change: what was read before one is not kept. */
  #changes = 0;

  constructor(store: QuotaStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Reads through `queries` where it has to: inside of a transaction that must be the transaction. */
  async of(team_id: string, queries: Queries = this.#store.db): Promise<Policies> {
    const now_ms = this.#clock.monotonicMs();
    const known = this.#known.get(team_id);
    if (known && now_ms - known.read_ms <= AGE_MAX_MS) return known.policies;
    const changes = this.#changes;
    const policies = await this.#store.policiesOf(queries, team_id);
    if (changes !== this.#changes) return policies;
    if (this.#known.size >= TEAMS_MAX) this.#known.clear();
    this.#known.set(team_id, { policies, read_ms: now_ms });
    return policies;
  }

  /** A team's policies have changed. */
  forget(team_id: string): void {
    this.#changes += 1;
    this.#known.delete(team_id);
  }
}
