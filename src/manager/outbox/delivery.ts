import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Metric } from '../../base/metrics.ts';
import type { Service } from '../../base/service.ts';
import { DELIVERY_CONCURRENCY } from '../../contract/defaults.ts';
import { ApiError } from '../../contract/errors.ts';
import type { UndeliveredRecord } from '../../runtime/runtime.ts';
import type { AddressGuard } from '../../webhook/address-guard.ts';
import { SharedLookup } from '../../webhook/lookup.ts';
import { threadlessResolve } from '../../webhook/resolver.ts';
import { HttpTransport, type Transport } from '../../webhook/transport.ts';
import { DatabaseClock } from '../database/clock-store.ts';
import type { Database, Transaction } from '../database/database.ts';
import { endpointOf } from '../database/endpoint-key.ts';
import type { Seal } from '../database/seal.ts';
import type { DeletionNotice, DeletionOutbox, TakenOver, WebhookTarget } from '../sandboxes/ports.ts';
import { AttemptBudget } from './attempt-budget.ts';
import { DeliveryMetrics } from './delivery-metrics.ts';
import { DeliveryViewStore } from './delivery-store.ts';
import { EndpointStore } from './endpoint-store.ts';
import { Endpoints } from './endpoints.ts';
import { OutboxStore } from './outbox-store.ts';
import { OutcomeWriter } from './outcome-store.ts';

/** What is undelivered goes record by record. */
const FULL_RETRY_S = 30;

interface Parts {
  database: Database;
  clock: Clock;
  log: Log;
  seal: Seal;
  guard: AddressGuard;
  /** This replica's name. */
  replica: string;
  /** What makes the attempts at one endpoint. */
  make_transport?: () => Transport;
}

/** The manager's outbox with all that delivers it: what deletions write, what teams see, what is sent. */
export class Delivery implements DeletionOutbox, Service {
  readonly views: DeliveryViewStore;
  readonly #clock: Clock;
  readonly #outbox: OutboxStore;
  readonly #endpoints: Endpoints;
  readonly #outcomes: OutcomeWriter;
  readonly #metrics = new DeliveryMetrics();
  /** Endpoints of records that were written since the last `wake`. */
  #written = new Set<string>();

  constructor({ database, clock, log, seal, guard, replica, make_transport }: Parts) {
    const database_clock = new DatabaseClock(database, clock);
    // One for all: a name that hangs is asked for once, however many endpoints have it.
    const lookup = new SharedLookup(guard, threadlessResolve());
    this.#clock = clock;
    this.views = new DeliveryViewStore(database, database_clock);
    this.#outbox = new OutboxStore(database, database_clock, seal);
    this.#outcomes = new OutcomeWriter(database, clock, database_clock, log);
    this.#endpoints = new Endpoints({
      database,
      clock,
      database_clock,
      log,
      seal,
      permits: new AttemptBudget(),
      outcomes: this.#outcomes,
      make_transport: make_transport ?? (() => new HttpTransport(clock, DELIVERY_CONCURRENCY, lookup)),
      on_attempt: (report) => this.#metrics.attempted(report, clock.wallMs()),
      endpoints: new EndpointStore(database, database_clock, replica),
      outbox: this.#outbox,
    });
  }

  start(): Promise<void> {
    return this.#endpoints.start();
  }

  stop(): Promise<void> {
    return this.#endpoints.stop();
  }

  async checkCapacity(tx: Transaction, team_id: string): Promise<void> {
    if (await this.#outbox.hasRoom(tx, team_id)) return;
    throw new ApiError('outbox_full', 'Too many events of the team wait for their delivery.', {
      retry_after_s: FULL_RETRY_S,
    });
  }

  async sandboxDeleted(tx: Transaction, notice: DeletionNotice): Promise<void> {
    await this.#outbox.insertDeleted(tx, notice);
    this.#metrics.enqueued.add(['sandbox.deleted']);
    this.#written.add(endpointOf(notice.webhook_url));
  }

  async handOver(tx: Transaction, sender: WebhookTarget, records: UndeliveredRecord[]): Promise<TakenOver[]> {
    const taken = await this.#outbox.takeOver(tx, sender, records);
    for (const { event_type } of records) this.#metrics.enqueued.add([event_type]);
    this.#written.add(endpointOf(sender.webhook_url));
    return taken;
  }

  handOverAttempts(tx: Transaction, taken: TakenOver[]): Promise<void> {
    return this.#outbox.takeOverAttempts(tx, taken);
  }

  wake(): void {
    const written = this.#written;
    this.#written = new Set();
    this.#endpoints.committed(written);
  }

  /** Makes a final record pending again; one that is pending stays as it is. */
  async replay(team_id: string, event_id: string): Promise<void> {
    this.#endpoints.replayed(await this.views.replay(team_id, event_id));
  }

  /** The same for every record of a team in a state; tells how many. */
  async replayAll(team_id: string, state: 'failed' | 'expired' | 'delivered'): Promise<number> {
    const { replayed, endpoints } = await this.views.replayAll(team_id, state);
    this.#endpoints.replayed(endpoints);
    return replayed;
  }

  /** For `/metrics`. */
  metrics(): Metric[] {
    const gauge = (name: string, help: string, value: () => Promise<number> | number): Metric => ({
      name,
      type: 'gauge',
      help,
      samples: async () => [{ value: await value() }],
    });
    const age_s = async () => {
      const { oldest_at_ms } = await this.views.figures();
      return oldest_at_ms === null ? 0 : Math.max(0, this.#clock.wallMs() - oldest_at_ms) / 1000;
    };
    return [
      ...this.#metrics.metrics(),
      {
        name: 'webhook_outbox_records',
        type: 'gauge',
        help: 'Records of all replicas that are not final.',
        samples: async () => [{ labels: { state: 'pending' }, value: (await this.views.figures()).pending }],
      },
      gauge('webhook_outbox_oldest_pending_seconds', 'Age of the oldest pending record.', age_s),
      gauge(
        'webhook_endpoints_owned',
        'Endpoints this replica delivers to.',
        () => this.#endpoints.figures().owned,
      ),
      gauge(
        'webhook_endpoints_backing_off',
        'Those of them that back off.',
        () => this.#endpoints.figures().backing_off,
      ),
      gauge('webhook_attempts_under_way', 'Attempts under way.', () => this.#endpoints.figures().under_way),
      {
        name: 'webhook_outcomes_refused_total',
        type: 'counter',
        help: 'Outcomes refused because another replica had taken over the endpoint.',
        samples: () => [{ value: this.#outcomes.refused }],
      },
    ];
  }
}
