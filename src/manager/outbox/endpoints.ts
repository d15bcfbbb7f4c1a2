import { type Clock, runTime, sleep, type Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Service } from '../../base/service.ts';
import type { EndpointView } from '../../contract/deliveries.ts';
import { loggedEndpoint } from '../../outbox/endpoint-log.ts';
import { reasonOf } from '../database/database-errors.ts';
import { EndpointDelivery, type EndpointDeliveryParts } from './endpoint-delivery.ts';
import type { EndpointStore, PendingEndpoint } from './endpoint-store.ts';
import type { OutboxStore } from './outbox-store.ts';
import { ReplicaLease } from './replica-lease.ts';

/** Interval at which records of other replicas, and ended replicas, are detected. */
const POLL_MS = 1_000;
/** Number of polls for which an endpoint without pending records keeps its connections. */
const IDLE_POLLS = 10;
/** How long a stop waits for running attempts to end. */
const STOP_MS = 3_000;
const STOP_CHECK_MS = 20;
const PRUNE_EVERY_POLLS = 5;
const PRUNED_AT_ONCE = 500;
const PRUNES_AT_MOST = 20;

interface Parts extends EndpointDeliveryParts {
  endpoints: EndpointStore;
  outbox: OutboxStore;
}

/**
 * Delivers the manager's outbox: runs a dispatcher for each endpoint that has pending records and that this replica
 * owns. Polls for records committed by others, and for endpoints whose replica has ended. Source: contract section 7.
 *
 * States of an endpoint, as this replica sees it:
 *
 * | State | Entered when | Left when |
 * |---|---|---|
 * | foreign | another replica owns it | its replica releases it, or loses its lease |
 * | wanted | this replica committed a record for it and does not own it | claimed (owned) or refused (foreign) |
 * | owned | a claim succeeds: a delivery runs | idle for `IDLE_POLLS` polls (closing), taken over or lease lost (foreign) |
 * | closing | idle for `IDLE_POLLS` polls: the delivery stops | released; new records make it wanted |
 */
export class Endpoints implements Service {
  readonly #parts: Parts;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #deliveries = new Map<string, EndpointDelivery>();
  readonly #lease: ReplicaLease;
  /** Endpoints that are being released. */
  readonly #closing = new Set<string>();
  /** Number of polls since an owned endpoint had pending records. */
  readonly #idle_polls = new Map<string, number>();
  #is_running = false;
  #polls = 0;
  #timer: Timer | null = null;
  /** Changes of ownership, which run one after another. */
  #queue: Promise<void> = Promise.resolve();
  /** Endpoints of this replica's commits that it does not own. */
  #wanted = new Set<string>();
  #has_failed = false;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#clock = parts.clock;
    this.#log = parts.log;
    this.#lease = new ReplicaLease(parts.endpoints, parts.clock, {
      onLost: () => this.#dropAll(),
      onRenewed: () => parts.budget.wake(),
    });
    parts.charge?.onFree(() => {
      for (const delivery of this.#deliveries.values()) delivery.freed();
    });
  }

  /** The number of owned endpoints, of those in backoff and those that reject, and of running attempts. */
  counts(): { owned: number; backing_off: number; rejecting: number; under_way: number } {
    const all = [...this.#deliveries.values()].map(({ health }) => health);
    const of = (health: EndpointView['health']) => all.filter((each) => each === health).length;
    const { under_way } = this.#parts.budget;
    return { owned: all.length, backing_off: of('backing_off'), rejecting: of('rejecting'), under_way };
  }

  /** Registers the lease and claims free endpoints; resolves after the first poll. */
  async start(): Promise<void> {
    this.#is_running = true;
    await this.#enqueue(() => this.#poll());
    this.#schedule();
  }

  /** Waits up to 3 s for running attempts to end, and releases every endpoint. */
  async stop(): Promise<void> {
    if (!this.#is_running) return;
    this.#is_running = false;
    this.#timer?.cancel();
    for (const delivery of this.#deliveries.values()) delivery.pause();
    const end_ms = runTime(this.#clock).monotonicMs() + STOP_MS;
    while (this.#parts.budget.under_way > 0 && runTime(this.#clock).monotonicMs() < end_ms) {
      await sleep(runTime(this.#clock), STOP_CHECK_MS);
    }
    await this.#queue;
    await Promise.all([...this.#deliveries.values()].map((delivery) => delivery.stop()));
    this.#deliveries.clear();
    await this.#parts.outcomes.close();
    await this.#parts.endpoints.leave().catch((error: Error) => {
      this.#log.warn(
        { reason: error.message },
        'endpoints could not be released; they become free when the lease expires',
      );
    });
  }

  /** This replica committed records for these endpoints. */
  committed(endpoints: Iterable<string>): void {
    if (!this.#is_running) return;
    for (const endpoint of endpoints) {
      const delivery = this.#deliveries.get(endpoint);
      if (delivery && !this.#closing.has(endpoint)) delivery.committed();
      else this.#wanted.add(endpoint);
    }
    if (this.#wanted.size > 0) void this.#enqueue(() => this.#claimWanted());
  }

  /** This replica made records of these endpoints due again. */
  replayed(endpoints: Iterable<string>): void {
    for (const endpoint of endpoints) this.#deliveries.get(endpoint)?.refresh();
    this.committed([...endpoints].filter((endpoint) => !this.#deliveries.has(endpoint)));
  }

  #schedule(): void {
    this.#timer?.cancel();
    if (!this.#is_running) return;
    this.#timer = this.#clock.after(
      POLL_MS,
      () => void this.#enqueue(() => this.#poll()).then(() => this.#schedule()),
    );
  }

  /** Runs changes one after another; the next poll repeats one that failed. */
  #enqueue(work: () => Promise<void>): Promise<void> {
    this.#queue = this.#queue.then(async () => {
      try {
        if (this.#is_running) await work();
        if (this.#has_failed) this.#log.info('the outbox can be read again');
        this.#has_failed = false;
      } catch (error) {
        if (!this.#has_failed) {
          this.#log.warn({ reason: reasonOf(error) }, 'the outbox cannot be read; retrying');
        }
        this.#has_failed = true;
      }
    });
    return this.#queue;
  }

  async #poll(): Promise<void> {
    const { endpoints } = this.#parts;
    this.#polls += 1;
    await this.#lease.poll(this.#deliveries.size > 0);
    await endpoints.removeEnded();
    const pending = await endpoints.pending();
    await this.#claimFree(
      pending.filter(({ owner, endpoint }) => owner === null || this.#isLeftOver(owner, endpoint)),
    );
    const names = new Set(pending.map(({ endpoint }) => endpoint));
    for (const each of pending) this.#deliveries.get(each.endpoint)?.polled(each);
    await this.#dropIdle(names);
    if (this.#polls % PRUNE_EVERY_POLLS === 0) await this.#prune();
  }

  async #prune(): Promise<void> {
    const { outbox } = this.#parts;
    const before = outbox.dropped;
    let pruned = PRUNED_AT_ONCE;
    for (let i = 0; i < PRUNES_AT_MOST && pruned >= PRUNED_AT_ONCE; i++) {
      pruned = await outbox.prune(PRUNED_AT_ONCE);
    }
    if (before > 0 || outbox.dropped === 0) return;
    this.#log.warn(
      "failed and expired records of a team are removed before their time: they are more than a team's bound",
    );
  }

  /** Whether the database names this replica as the owner of an endpoint that it no longer delivers to. */
  #isLeftOver(owner: string, endpoint: string): boolean {
    return owner === this.#parts.endpoints.owner && !this.#deliveries.has(endpoint);
  }

  async #claimWanted(): Promise<void> {
    const wanted = [...this.#wanted].filter((endpoint) => !this.#deliveries.has(endpoint));
    this.#wanted.clear();
    if (wanted.length > 0) await this.#claim(wanted);
  }

  async #claimFree(pending: PendingEndpoint[]): Promise<void> {
    const names = pending
      .map(({ endpoint }) => endpoint)
      .filter((endpoint) => !this.#deliveries.has(endpoint));
    if (names.length > 0) await this.#claim(names);
  }

  async #claim(names: string[]): Promise<void> {
    if (!this.#lease.allowsAttempt()) await this.#lease.renew();
    for (const owned of await this.#parts.endpoints.claim(names)) {
      const { endpoint } = owned;
      const delivery = new EndpointDelivery(
        owned,
        this.#parts,
        () => this.#lease.allowsAttempt(),
        () => this.#giveUp(delivery),
      );
      this.#deliveries.set(endpoint, delivery);
      await delivery.start();
    }
  }

  /** Drops an endpoint that another replica has taken over. */
  #giveUp(delivery: EndpointDelivery): void {
    const { endpoint, url } = delivery.owned;
    if (this.#deliveries.get(endpoint) !== delivery) return;
    this.#deliveries.delete(endpoint);
    this.#idle_polls.delete(endpoint);
    void delivery.stop();
    this.#log.warn(
      { endpoint: (url && loggedEndpoint(url)) || endpoint },
      'another replica has taken over delivery to an endpoint',
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
    if (this.#deliveries.size > 0) this.#log.warn('the lease was lost; other replicas take over delivery');
    for (const delivery of [...this.#deliveries.values()]) {
      this.#deliveries.delete(delivery.owned.endpoint);
      await delivery.stop();
    }
    this.#idle_polls.clear();
  }
}
