import type { Log } from '../../base/log.ts';
import { DELIVERY_CONCURRENCY } from '../../contract/defaults.ts';
import type { EndpointView } from '../../contract/deliveries.ts';
import type { AttemptReport } from '../../outbox/attempts.ts';
import { Dispatcher } from '../../outbox/dispatcher.ts';
import { EndpointLog, loggedEndpoint } from '../../outbox/endpoint-log.ts';
import { endpointVerdict } from '../../webhook/retry.ts';
import type { Transport } from '../../webhook/transport.ts';
import type { Database } from '../database/database.ts';
import type { DatabaseClock } from '../database/database-clock-store.ts';
import type { Seal } from '../database/seal.ts';
import type { OutboxCharge } from '../sandboxes/ports.ts';
import { type AttemptBudget, EndpointLoad } from './attempt-budget.ts';
import { type EndpointRecord, EndpointRecordStore } from './endpoint-record-store.ts';
import { EndpointSender } from './endpoint-sender.ts';
import type { OwnedEndpoint, PendingEndpoint } from './endpoint-store.ts';
import type { OutcomeStore } from './outcome-store.ts';

/** Number of polls that read again after a new record was seen, because older records may become visible later. */
const READS_AFTER_NEWS = 3;
/** Interval, in polls, of a read regardless of new records. */
const READ_EVERY_POLLS = 30;

/** What the deliveries of all endpoints share. */
export interface EndpointDeliveryParts {
  database: Database;
  clock: DatabaseClock;
  log: Log;
  seal: Seal;
  budget: AttemptBudget;
  outcomes: OutcomeStore;
  /** Without it nothing is charged. */
  charge?: OutboxCharge | undefined;
  makeTransport: () => Transport;
  onAttempt: (report: AttemptReport) => void;
}

/** The delivery to one endpoint that this replica owns. */
export class EndpointDelivery {
  readonly owned: OwnedEndpoint;
  readonly #dispatcher: Dispatcher<EndpointRecord>;
  readonly #records: EndpointRecordStore;
  readonly #parts: EndpointDeliveryParts;
  readonly #load = new EndpointLoad();
  readonly #log: EndpointLog;
  #newest_untried_id: number | null = null;
  #reads_left = READS_AFTER_NEWS;
  #polls = 0;

  /**
   * `hasLease`: whether an attempt that starts now ends within the lease. `onGiveUp` is called when another replica turns
   * out to own the endpoint; the delivery must then be dropped.
   */
  constructor(
    owned: OwnedEndpoint,
    parts: EndpointDeliveryParts,
    hasLease: () => boolean,
    onGiveUp: () => void,
  ) {
    this.owned = owned;
    this.#parts = parts;
    const { clock, log, budget, seal, charge } = parts;
    const onLost = () => {
      void this.#end();
      onGiveUp();
    };
    this.#records = new EndpointRecordStore(owned, { ...parts, hasLease, onLost });
    const sender = new EndpointSender({ transport: parts.makeTransport(), seal, log, clock, charge });
    this.#log = new EndpointLog(log, clock, loggedEndpoint(owned.url ?? '') ?? owned.endpoint);
    const again = () => this.#dispatcher.wake();
    this.#dispatcher = new Dispatcher(
      { concurrency: DELIVERY_CONCURRENCY },
      {
        store: this.#records,
        sender,
        clock,
        log,
        retryOf: ({ retry }) => retry,
        onAttempt: (report) => this.#attempted(report),
        mayStart: () => budget.mayStart(this.#load, hasLease(), again),
        onStarted: () => budget.begin(this.#load),
      },
    );
  }

  /** Loads due records and starts delivery. */
  async start(): Promise<void> {
    await this.#dispatcher.start();
  }

  /** The endpoint's health. */
  get health(): EndpointView['health'] {
    return this.#dispatcher.endpointHealth().health;
  }

  /** The number of running attempts at the endpoint. */
  get under_way(): number {
    return this.#load.under_way;
  }

  /** Records were added. */
  committed(): void {
    this.#records.committed();
  }

  /** A team is held no more: reads what may have been left out. */
  freed(): void {
    if (!this.#records.takesUp()) return;
    this.#records.committed();
    this.#dispatcher.refresh();
  }

  /** Reads due records again, after a record was made due. */
  refresh(): void {
    this.#dispatcher.refresh();
  }

  /** Handles the result of a poll for the endpoint. */
  polled({ newest_untried_id, first_due_ms }: PendingEndpoint): void {
    this.#polls += 1;
    if (newest_untried_id !== this.#newest_untried_id) this.#reads_left = READS_AFTER_NEWS;
    this.#newest_untried_id = newest_untried_id;
    if (newest_untried_id !== null && (this.#reads_left > 0 || this.#polls % READ_EVERY_POLLS === 0)) {
      this.#reads_left -= 1;
      this.#records.committed();
    }
    if (first_due_ms !== null && first_due_ms <= this.#records.now()) this.#dispatcher.refresh();
  }

  /** Starts no further attempts; running ones continue. */
  pause(): void {
    this.#dispatcher.pause();
  }

  /** Ends delivery; running attempts are abandoned and made again by the next owner. */
  async stop(): Promise<void> {
    this.#parts.budget.forget(this.#load);
    await this.#end();
  }

  #end(): Promise<void> {
    this.#records.close();
    return this.#dispatcher.stop();
  }

  #attempted(report: AttemptReport): void {
    const verdict = endpointVerdict(report.result);
    if (verdict === 'up' || verdict === 'down') this.#load.is_failing = verdict === 'down';
    this.#log.note(this.#dispatcher.endpointHealth(), report);
    this.#parts.onAttempt(report);
  }
}
