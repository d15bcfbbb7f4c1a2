import type { QuotaRefusal } from '../../contract/error-details.ts';
import { ApiError } from '../../contract/errors.ts';
import type { Dimension } from '../../contract/words.ts';
import type { Transaction } from '../database/database.ts';
import type { Admission, Lease } from '../sandboxes/ports.ts';
import type { NodeCapacity } from './node-capacity.ts';
import type { QuotaMetrics } from './quota-metrics.ts';
import type { QuotaPolicies } from './quota-policies.ts';
import type { QuotaStore } from './quota-store.ts';

/**
 * Decides whether another sandbox may be active, inside the transaction that writes its row. The decision is exact,
 * because the team is locked until that transaction ends. Source: contract section 7, "Charging order", and "Node capacity".
 */
export class SandboxAdmission implements Admission {
  readonly #store: QuotaStore;
  readonly #policies: QuotaPolicies;
  readonly #node: NodeCapacity;
  readonly #metrics: QuotaMetrics;

  constructor(store: QuotaStore, policies: QuotaPolicies, node: NodeCapacity, metrics: QuotaMetrics) {
    this.#store = store;
    this.#policies = policies;
    this.#node = node;
    this.#metrics = metrics;
  }

  /** Admits a sandbox that becomes active. Errors: `quota_exceeded`, `capacity_exhausted`, `unavailable`. */
  async admit(tx: Transaction, lease: Lease): Promise<void> {
    await this.#checkActiveSandboxes(tx, lease.team_id);
    await this.#counted('node', () => this.#node.checkCapacity(tx, lease));
  }

  /** Admits a change of memory; `lease` has the new value. Errors: `capacity_exhausted`, `unavailable`. */
  async admitChange(tx: Transaction, lease: Lease): Promise<void> {
    await this.#counted('node', () => this.#node.checkCapacity(tx, lease));
  }

  /** Admits a paused copy. Errors: `capacity_exhausted`, `unavailable`. */
  async admitCopy(tx: Transaction, lease: Lease): Promise<void> {
    await this.#counted('node', () => this.#node.checkPaused(tx, lease));
  }

  async #checkActiveSandboxes(tx: Transaction, team_id: string): Promise<void> {
    const policy = (await this.#policies.of(team_id, tx)).get('active_sandboxes');
    if (!policy) return;
    await this.#counted('active_sandboxes', async () => {
      const current = await this.#store.lockedActiveSandboxes(tx, team_id);
      if (current < policy.limit_value) return;
      throw quotaExceeded({
        dimension: 'active_sandboxes',
        limit: policy.limit_value,
        current,
        requested: 1,
        retry_after_ms: null,
      });
    });
  }

  async #counted(dimension: string, check: () => Promise<void>): Promise<void> {
    try {
      await check();
      this.#metrics.decisions.add([dimension, 'admitted']);
    } catch (error) {
      if (error instanceof ApiError) this.#metrics.decisions.add([dimension, outcomeOf(error)]);
      throw error;
    }
  }
}

function outcomeOf({ code }: ApiError): string {
  return code === 'quota_exceeded' || code === 'capacity_exhausted' ? 'refused' : 'unreachable';
}

/** What asks for less of a quota. */
const ADVICE: Partial<Record<Dimension, string>> = {
  active_sandboxes: ' Paused and deleted sandboxes do not count.',
  sandbox_claims: ' Resumes and forks take none.',
};

/** The error (429) that names the quota that is used up, and says what is left, when there is more, and what asks for less. */
export function quotaExceeded(details: QuotaRefusal): ApiError {
  const { dimension, limit, current, requested, retry_after_ms } = details;
  const left = Math.max(0, limit - (current ?? limit));
  const more = retry_after_ms === null ? '' : `, more in ${retry_after_ms} ms`;
  const text = `The team's quota of ${dimension} (${limit}) is used up: ${requested} needed, ${left} left${more}.`;
  return new ApiError('quota_exceeded', text + (ADVICE[dimension] ?? ''), details);
}
