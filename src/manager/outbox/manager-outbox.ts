import type { Log } from '../../base/log.ts';
import { gauge, labelledGauge, type Metric } from '../../base/metrics.ts';
import type { Service } from '../../base/service.ts';
import { DELIVERY_CONCURRENCY } from '../../contract/defaults.ts';
import { ApiError } from '../../contract/errors.ts';
import type { FinalState, UndeliveredState } from '../../contract/words.ts';
import { DeliveryMetrics } from '../../outbox/delivery-metrics.ts';
import type { UndeliveredRecord } from '../../runtime/runtime.ts';
import type { AddressGuard } from '../../webhook/address-guard.ts';
import { SharedLookup } from '../../webhook/lookup.ts';
import { threadlessResolve } from '../../webhook/resolver.ts';
import { HttpTransport, type Transport } from '../../webhook/transport.ts';
import type { Database, Transaction } from '../database/database.ts';
import type { DatabaseClock } from '../database/database-clock-store.ts';
import type { Seal } from '../database/seal.ts';
import type {
  DeletedEvent,
  DeletionNotice,
  DeletionOutbox,
  OutboxCharge,
  TakenOver,
  WebhookTarget,
} from '../sandboxes/ports.ts';
import { AttemptBudget } from './attempt-budget.ts';
import { DeliveryViewStore } from './delivery-view-store.ts';
import { endpointOf } from './endpoint-key.ts';
import { EndpointStore } from './endpoint-store.ts';
import { Endpoints } from './endpoints.ts';
import { OutboxStore } from './outbox-store.ts';
import { OutcomeStore } from './outcome-store.ts';

/** Undelivered records leave one by one. */
const FULL_RETRY_S = 30;

interface Parts {
  database: Database;
  clock: DatabaseClock;
  log: Log;
  seal: Seal;
  guard: AddressGuard;
  /** This replica's name. */
  replica: string;
  /** Without it nothing is charged. */
  charge?: OutboxCharge;
  /** Creates the transport of one endpoint. */
  makeTransport?: () => Transport;
}

/** The manager's outbox and its delivery: records written by deletions, views for teams, and the requests sent. */
export class ManagerOutbox implements DeletionOutbox, Service {
  readonly views: DeliveryViewStore;
  readonly #clock: DatabaseClock;
  readonly #outbox: OutboxStore;
  readonly #endpoints: Endpoints;
  readonly #outcomes: OutcomeStore;
  readonly #metrics = new DeliveryMetrics();
  /** Endpoints of records that were written since the last `wake()`. */
  #written = new Set<string>();

  constructor({ database, clock, log, seal, guard, replica, charge, makeTransport }: Parts) {
    // Shared, so that a name whose lookup hangs is only looked up once for all endpoints.
    const lookup = new SharedLookup(guard, threadlessResolve());
    this.#clock = clock;
    this.views = new DeliveryViewStore(database, clock);
    this.#outbox = new OutboxStore(database, clock, seal);
    this.#outcomes = new OutcomeStore(database, clock, log);
    this.#endpoints = new Endpoints({
      database,
      clock,
      log,
      seal,
      charge,
      budget: new AttemptBudget(),
      outcomes: this.#outcomes,
      makeTransport: makeTransport ?? (() => new HttpTransport(clock, DELIVERY_CONCURRENCY, lookup)),
      onAttempt: (report) => this.#metrics.observeAttempt(report, clock.wallMs()),
      endpoints: new EndpointStore(database, clock, replica),
      outbox: this.#outbox,
    });
  }

  /** Starts delivery; resolves after the first poll. */
  start(): Promise<void> {
    return this.#endpoints.start();
  }

  /** Ends delivery and releases every endpoint. */
  stop(): Promise<void> {
    return this.#endpoints.stop();
  }

  /** Throws `outbox_full` if too many records or bytes of a team are undelivered. */
  async checkCapacity(tx: Transaction, team_id: string): Promise<void> {
    if (await this.#outbox.hasRoom(tx, team_id)) return;
    throw new ApiError('outbox_full', 'The team has too many undelivered events.', {
      retry_after_s: FULL_RETRY_S,
    });
  }

  /** Writes the signed `sandbox.deleted` in the transaction that commits the deletion. Errors: `unavailable`. */
  async sandboxDeleted(tx: Transaction, notice: DeletionNotice): Promise<DeletedEvent> {
    const event = await this.#outbox.insertDeleted(tx, notice);
    this.#metrics.countEnqueued(['sandbox.deleted']);
    this.#written.add(endpointOf(notice.webhook_url));
    return event;
  }

  /** Takes over the undelivered records of a sandbox, in order; returns those that were new. Errors: `unavailable`. */
  async handOver(tx: Transaction, sender: WebhookTarget, records: UndeliveredRecord[]): Promise<TakenOver[]> {
    const taken = await this.#outbox.takeOver(tx, sender, records);
    this.#metrics.countEnqueued(records.map(({ event_type }) => event_type));
    this.#written.add(endpointOf(sender.webhook_url));
    return taken;
  }

  /** Stores the earlier attempts of records that were taken over. Errors: `unavailable`. */
  handOverAttempts(tx: Transaction, taken: TakenOver[]): Promise<void> {
    return this.#outbox.takeOverAttempts(tx, taken);
  }

  /** Starts delivery of the records written since the last call, once they are committed. */
  wake(): void {
    const written = this.#written;
    this.#written = new Set();
    this.#endpoints.committed(written);
  }

  /** Makes a final record pending again; one that is pending stays as it is. */
  async replay(team_id: string, event_id: string): Promise<void> {
    this.#endpoints.replayed(await this.views.replay(team_id, event_id));
  }

  /** The same for every record of a team in a state; returns their number. Errors: `unavailable`. */
  async replayAll(team_id: string, state: FinalState): Promise<number> {
    const { replayed, endpoints } = await this.views.replayAll(team_id, state);
    this.#endpoints.replayed(endpoints);
    return replayed;
  }

  /** Removes a record that is not sent any more; false where the team has none, or it is pending. Errors: `unavailable`. */
  discard(team_id: string, event_id: string): Promise<boolean> {
    return this.#outbox.discard(team_id, event_id);
  }

  /** Removes every record of a team in a state; returns their number. Errors: `unavailable`. */
  discardAll(team_id: string, state: UndeliveredState): Promise<number> {
    return this.#outbox.discardAll(team_id, state);
  }

  /** How many endpoints of this replica back off or reject, a line for each. The log names them, teams do not see others'. */
  troubles(): string[] {
    const { backing_off, rejecting } = this.#endpoints.counts();
    const line = (count: number, how: string) => {
      const what = count === 1 ? '1 webhook endpoint is' : `${count} webhook endpoints are`;
      return count === 0 ? [] : [`${what} ${how}: the log says which, and why`];
    };
    return [...line(backing_off, 'in backoff'), ...line(rejecting, 'rejecting')];
  }

  /** The metrics of delivery, for the registry. */
  metrics(): Metric[] {
    const age_s = async () => {
      const { oldest_at_ms } = await this.views.counts();
      return oldest_at_ms === null ? 0 : Math.max(0, this.#clock.wallMs() - oldest_at_ms) / 1000;
    };
    const pending = async () => ({ pending: (await this.views.counts()).pending });
    const endpoints = () => this.#endpoints.counts();
    return [
      ...this.#metrics.metrics(),
      labelledGauge('outbox_records', 'Pending records of all replicas.', 'state', pending),
      gauge('outbox_oldest_pending_seconds', 'Age of the oldest pending record.', age_s),
      gauge('endpoints_owned', 'Endpoints that this replica delivers to.', () => endpoints().owned),
      gauge('endpoints_backing_off', 'Owned endpoints in backoff.', () => endpoints().backing_off),
      gauge('endpoints_rejecting', 'Owned endpoints that refuse every event.', () => endpoints().rejecting),
      gauge('attempts_under_way', 'Attempts in flight.', () => endpoints().under_way),
      {
        name: 'outcomes_refused_total',
        type: 'counter',
        help: 'Outcomes refused because another replica had taken over the endpoint.',
        samples: () => [{ value: this.#outcomes.refused }],
      },
      {
        name: 'records_dropped_total',
        type: 'counter',
        help: "Failed and expired records removed before their time: they were more than their team's bound.",
        samples: () => [{ value: this.#outbox.dropped }],
      },
    ];
  }
}
