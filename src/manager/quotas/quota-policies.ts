import type { Clock } from '../../base/clock.ts';
import type { RatePolicy } from '../../contract/quotas.ts';
import type { Dimension } from '../../contract/words.ts';
import type { Queries } from '../database/database.ts';
import type { HeldPolicy, QuotaStore } from './quota-store.ts';

/** Changes made by other replicas take effect within 5 s. */
const AGE_MAX_MS = 4_000;
const TEAMS_MAX = 10_000;

type Policies = ReadonlyMap<Dimension, HeldPolicy>;

/** A cache of policies by team: at most 4 s old, and invalidated at once by this replica's own changes. */
export class QuotaPolicies {
  readonly #store: QuotaStore;
  readonly #clock: Clock;
  readonly #known = new Map<string, { policies: Policies; read_ms: number }>();
  /** Increases with every change: a read that began before one is not cached. */
  #changes = 0;

  constructor(store: QuotaStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** The policies of a team by dimension. On a cache miss they are read through `queries`, which must be the transaction if there is one. Errors: `unavailable`. */
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

  /** A team's policy of a rate dimension; null is unlimited. Errors: `unavailable`. */
  async rateOf(team_id: string, dimension: Dimension): Promise<RatePolicy | null> {
    const policy = (await this.of(team_id)).get(dimension);
    if (!policy || policy.interval_ms === null || policy.burst_value === null) return null;
    const { limit_value, interval_ms, burst_value } = policy;
    return { limit_value, interval_ms, burst_value };
  }

  /** Drops a team's policies from the cache after a change. */
  forget(team_id: string): void {
    this.#changes += 1;
    this.#known.delete(team_id);
  }
}
