import { type Clock, sleep, type Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Service } from '../../base/service.ts';
import { ATTEMPT_TIMEOUT_MS, OUTBOX_LEASE_MS } from '../../contract/defaults.ts';
import { reasonOf } from '../database/database-errors.ts';
import { type DeliveryParts, EndpointDelivery } from './endpoint-delivery.ts';
import type { EndpointStore, PendingEndpoint } from './endpoint-store.ts';
import type { OutboxStore } from './outbox-store.ts';

/** How often it is looked what others committed and who is gone. */
const POLL_MS = 1_000;
/** While nothing is owned nobody waits for the lease: it is only kept alive. */
const IDLE_RENEWAL_MS = 8_000;
/** Attempts begin only while this much of the lease is left: none is under way when another replica takes over. */
const ATTEMPT_LEASE_MS = ATTEMPT_TIMEOUT_MS + 1_000;
/** An endpoint with nothing to do keeps its connections so long. */
const IDLE_POLLS = 10;
/** A stop leaves the attempts under way so long to end. */
const STOP_MS = 3_000;
const STOP_LOOK_MS = 20;
const PRUNE_EVERY_POLLS = 5;
const PRUNED_AT_ONCE = 500;
const PRUNES_AT_MOST = 20;

interface Parts extends DeliveryParts {
  endpoints: EndpointStore;
  outbox: OutboxStore;
}

/**
 * Delivers the manager's outbox: a dispatcher for each endpoint that has pending records and that this replica owns.
 * Polls for what others committed, and for endpoints whose replica has died. Source: contract section 7.
 */
export class Endpoints implements Service {
  readonly #parts: Parts;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #deliveries = new Map<string, EndpointDelivery>();
  /** Endpoints that are being given back. */
  readonly #closing = new Set<string>();
  /** Polls since an owned endpoint had something pending. */
  readonly #idle_polls = new Map<string, number>();
  #is_running = false;
  #renewed_ms = Number.NEGATIVE_INFINITY;
  #is_registered = false;
  #polls = 0;
  #timer: Timer | null = null;
  /** Everything that changes what is owned, one after another. */
  #turn: Promise<void> = Promise.resolve();
  /** Endpoints of own commits that are not owned. */
  #wanted = new Set<string>();
  #was_out_of_order = false;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#clock = parts.clock;
    this.#log = parts.log;
  }

  /** Owned endpoints, and how many of them back off. */
  figures(): { owned: number; backing_off: number; under_way: number } {
    const all = [...this.#deliveries.values()];
    const backing_off = all.filter(({ is_healthy }) => !is_healthy).length;
    return { owned: all.length, backing_off, under_way: this.#parts.permits.under_way };
  }

  async start(): Promise<void> {
    this.#is_running = true;
    await this.#next(() => this.#poll());
    this.#schedule();
  }

  /** Lets what is under way end, for a moment, and gives every endpoint back. */
  async stop(): Promise<void> {
    if (!this.#is_running) return;
    this.#is_running = false;
    this.#timer?.cancel();
    for (const delivery of this.#deliveries.values()) delivery.pause();
    const end_ms = this.#clock.monotonicMs() + STOP_MS;
    while (this.#parts.permits.under_way > 0 && this.#clock.monotonicMs() < end_ms) {
      await sleep(this.#clock, STOP_LOOK_MS);
    }
    await this.#turn;
    await Promise.all([...this.#deliveries.values()].map((delivery) => delivery.stop()));
    this.#deliveries.clear();
    await this.#parts.outcomes.close();
    await this.#parts.endpoints.leave().catch((error: Error) => {
      this.#log.warn(
        { reason: error.message },
        'endpoints are not given back: they are free when the lease is over',
      );
    });
  }

  /** Records of these endpoints were committed by this replica. */
  committed(endpoints: Iterable<string>): void {
    if (!this.#is_running) return;
    for (const endpoint of endpoints) {
      const delivery = this.#deliveries.get(endpoint);
      if (delivery && !this.#closing.has(endpoint)) delivery.committed();
      else this.#wanted.add(endpoint);
    }
    if (this.#wanted.size > 0) void this.#next(() => this.#claimWanted());
  }

  /** Records of these endpoints were made due by this replica, as by a replay. */
  replayed(endpoints: Iterable<string>): void {
    for (const endpoint of endpoints) this.#deliveries.get(endpoint)?.refresh();
    this.committed([...endpoints].filter((endpoint) => !this.#deliveries.has(endpoint)));
  }

  #schedule(): void {
    this.#timer?.cancel();
    if (!this.#is_running) return;
    this.#timer = this.#clock.after(
      POLL_MS,
      () => void this.#next(() => this.#poll()).then(() => this.#schedule()),
    );
  }

  /** Does one thing after another; what fails is tried again by the next poll. */
  #next(work: () => Promise<void>): Promise<void> {
    this.#turn = this.#turn.then(async () => {
      try {
        if (this.#is_running) await work();
        this.#was_out_of_order = false;
      } catch (error) {
        if (!this.#was_out_of_order) {
          this.#log.warn({ reason: reasonOf(error) }, 'the outbox cannot be read; it is asked again');
        }
        this.#was_out_of_order = true;
      }
    });
    return this.#turn;
  }

  async #poll(): Promise<void> {
    const { endpoints, database_clock } = this.#parts;
    this.#polls += 1;
    await database_clock.measure();
    await this.#renew();
    await endpoints.removeEnded();
    const pending = await endpoints.pending();
    await this.#take(
      pending.filter(({ owner, endpoint }) => owner === null || this.#isLeftOver(owner, endpoint)),
    );
    const names = new Set(pending.map(({ endpoint }) => endpoint));
    for (const each of pending) this.#deliveries.get(each.endpoint)?.polled(each);
    await this.#dropIdle(names);
    if (this.#polls % PRUNE_EVERY_POLLS === 0) await this.#prune();
  }

  async #prune(): Promise<void> {
    for (let i = 0; i < PRUNES_AT_MOST; i++) {
      if ((await this.#parts.outbox.prune(PRUNED_AT_ONCE)) < PRUNED_AT_ONCE) return;
    }
  }

  /** Owned by this replica as far as the database knows, and given up here. */
  #isLeftOver(owner: string, endpoint: string): boolean {
    return owner === this.#parts.endpoints.owner && !this.#deliveries.has(endpoint);
  }

  async #renew(): Promise<void> {
    const age_ms = this.#clock.monotonicMs() - this.#renewed_ms;
    if (this.#deliveries.size > 0 || age_ms >= IDLE_RENEWAL_MS) await this.#renewNow();
  }

  async #renewNow(): Promise<void> {
    const { endpoints, permits } = this.#parts;
    const now_ms = this.#clock.monotonicMs();
    if (!(this.#is_registered && (await endpoints.renew()))) {
      await this.#dropAll();
      await endpoints.register();
      this.#is_registered = true;
    }
    this.#renewed_ms = now_ms;
    permits.wake();
  }

  /** Whether an attempt that begins now is over before anybody else may take its endpoint. */
  #hasLease(): boolean {
    return this.#clock.monotonicMs() - this.#renewed_ms < OUTBOX_LEASE_MS - ATTEMPT_LEASE_MS;
  }

  async #claimWanted(): Promise<void> {
    const wanted = [...this.#wanted].filter((endpoint) => !this.#deliveries.has(endpoint));
    this.#wanted.clear();
    if (wanted.length > 0) await this.#claim(wanted);
  }

  async #take(pending: PendingEndpoint[]): Promise<void> {
    const names = pending
      .map(({ endpoint }) => endpoint)
      .filter((endpoint) => !this.#deliveries.has(endpoint));
    if (names.length > 0) await this.#claim(names);
  }

  async #claim(names: string[]): Promise<void> {
    if (!this.#hasLease()) await this.#renewNow();
    for (const owned of await this.#parts.endpoints.claim(names)) {
      const { endpoint } = owned;
      const delivery = new EndpointDelivery(
        owned,
        this.#parts,
        () => this.#hasLease(),
        () => this.#giveUp(delivery),
      );
      this.#deliveries.set(endpoint, delivery);
      await delivery.start();
    }
  }

  /** Drops an endpoint that turned out to be somebody else's; the next poll tells whose. */
  #giveUp(delivery: EndpointDelivery): void {
    const { endpoint, url } = delivery.owned;
    if (this.#deliveries.get(endpoint) !== delivery) return;
    this.#deliveries.delete(endpoint);
    this.#idle_polls.delete(endpoint);
    void delivery.stop();
    this.#log.warn(
      // A path may hold what its owner keeps secret.
      { endpoint: url ? new URL(url).origin : endpoint },
      'another replica has taken over the delivery to an endpoint',
    );
  }

  async #dropIdle(pending: Set<string>): Promise<void> {
    for (const [endpoint, delivery] of [...this.#deliveries]) {
      const polls = pending.has(endpoint) ? 0 : (this.#idle_polls.get(endpoint) ?? 0) + 1;
      this.#idle_polls.set(endpoint, polls);
      if (polls >= IDLE_POLLS && delivery.under_way === 0) await this.#drop(endpoint, delivery);
    }
  }

  async #drop(endpoint: string, delivery: EndpointDelivery): Promise<void> {
    this.#closing.add(endpoint);
    await delivery.stop();
    this.#deliveries.delete(endpoint);
    this.#idle_polls.delete(endpoint);
    this.#closing.delete(endpoint);
    await this.#parts.endpoints.release(delivery.owned);
  }

  async #dropAll(): Promise<void> {
    if (this.#deliveries.size > 0) this.#log.warn('the lease was lost: other replicas deliver from here on');
    for (const delivery of [...this.#deliveries.values()]) {
      this.#deliveries.delete(delivery.owned.endpoint);
      await delivery.stop();
    }
    this.#idle_polls.clear();
  }
}
