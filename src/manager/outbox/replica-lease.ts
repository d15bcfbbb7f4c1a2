import type { Clock } from '../../base/clock.ts';
import { ATTEMPT_TIMEOUT_MS, OUTBOX_LEASE_MS } from '../../contract/defaults.ts';
import type { EndpointStore } from './endpoint-store.ts';

/** Without owned endpoints nothing depends on the lease, and it is only kept alive. */
const IDLE_RENEWAL_MS = 8_000;
/** Attempts only start while this much of the lease is left, so that none is running when another replica takes over. */
const ATTEMPT_LEASE_MS = ATTEMPT_TIMEOUT_MS + 1_000;

/** What happens to the lease. */
export interface LeaseListeners {
  /** Another replica removed the lease, or there was none yet: every owned endpoint must be dropped before it resolves. */
  onLost: () => Promise<void>;
  /** Attempts may start again. */
  onRenewed: () => void;
}

/**
 * This replica's lease on all endpoints that it owns. Source: contract section 7.
 *
 * | State | Entered when | Left when |
 * |---|---|---|
 * | none | created; a renewal finds that another replica removed the lease | registered |
 * | held | registered or renewed | too little time for an attempt is left |
 * | expiring | too little time for an attempt is left: no attempt starts | renewed (held) or removed (none) |
 */
export class ReplicaLease {
  readonly #store: EndpointStore;
  readonly #clock: Clock;
  readonly #listeners: LeaseListeners;
  #is_registered = false;
  #renewed_ms = Number.NEGATIVE_INFINITY;

  constructor(store: EndpointStore, clock: Clock, listeners: LeaseListeners) {
    this.#store = store;
    this.#clock = clock;
    this.#listeners = listeners;
  }

  /** Whether an attempt that starts now ends before another replica may take over its endpoint. */
  allowsAttempt(): boolean {
    return this.#ageMs() < OUTBOX_LEASE_MS - ATTEMPT_LEASE_MS;
  }

  /** Renews the lease at a poll: always while endpoints are owned, otherwise every 8 s. Errors: `unavailable`. */
  async poll(owns_endpoints: boolean): Promise<void> {
    if (owns_endpoints || this.#ageMs() >= IDLE_RENEWAL_MS) await this.renew();
  }

  /** Renews the lease, or registers a new one if it was lost. Errors: `unavailable`. */
  async renew(): Promise<void> {
    const now_ms = this.#clock.monotonicMs();
    if (!(this.#is_registered && (await this.#store.renew()))) {
      await this.#listeners.onLost();
      await this.#store.register();
      this.#is_registered = true;
    }
    this.#renewed_ms = now_ms;
    this.#listeners.onRenewed();
  }

  #ageMs(): number {
    return this.#clock.monotonicMs() - this.#renewed_ms;
  }
}
