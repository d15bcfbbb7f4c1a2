import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { DELIVERY_CONCURRENCY } from '../../contract/defaults.ts';
import type { AttemptReport } from '../../outbox/attempts.ts';
import { Dispatcher } from '../../outbox/dispatcher.ts';
import { endpointVerdict } from '../../webhook/retry.ts';
import type { Transport } from '../../webhook/transport.ts';
import type { DatabaseClock } from '../database/clock-store.ts';
import type { Database } from '../database/database.ts';
import type { Seal } from '../database/seal.ts';
import { type AttemptBudget, EndpointLoad } from './attempt-budget.ts';
import { EndpointRecordStore } from './endpoint-record-store.ts';
import { EndpointSender } from './endpoint-sender.ts';
import type { OwnedEndpoint, PendingEndpoint } from './endpoint-store.ts';
import type { OutcomeWriter } from './outcome-store.ts';

/** After a new record was seen it is looked again at so many polls: older ones may become visible after it. */
const LOOKS_AFTER_NEWS = 3;
/** And every so many polls whatever was seen. */
const LOOK_EVERY = 30;

/** What every endpoint's delivery shares. */
export interface DeliveryParts {
  database: Database;
  clock: Clock;
  database_clock: DatabaseClock;
  log: Log;
  seal: Seal;
  permits: AttemptBudget;
  outcomes: OutcomeWriter;
  make_transport: () => Transport;
  on_attempt: (report: AttemptReport) => void;
}

/** The delivery to one endpoint that this replica owns. */
export class EndpointDelivery {
  readonly owned: OwnedEndpoint;
  readonly #dispatcher: Dispatcher;
  readonly #records: EndpointRecordStore;
  readonly #parts: DeliveryParts;
  readonly #use = new EndpointLoad();
  #newest_untried_id: number | null = null;
  #looks = LOOKS_AFTER_NEWS;
  #polls = 0;

  /** `has_lease`: whether an attempt that begins now ends within the lease. `give_up`: the endpoint is to be dropped. */
  constructor(owned: OwnedEndpoint, parts: DeliveryParts, has_lease: () => boolean, give_up: () => void) {
    this.owned = owned;
    this.#parts = parts;
    const { clock, database_clock, log, permits, seal } = parts;
    const on_lost = () => {
      void this.#dispatcher.stop();
      give_up();
    };
    this.#records = new EndpointRecordStore(owned, { ...parts, clock: database_clock, on_lost });
    const sender = new EndpointSender({
      records: this.#records,
      transport: parts.make_transport(),
      seal,
      clock,
      database_clock,
      log,
      permits,
      use: this.#use,
      has_lease,
      on_lost,
    });
    const again = () => this.#dispatcher.wake();
    this.#dispatcher = new Dispatcher(
      { concurrency: DELIVERY_CONCURRENCY },
      {
        store: this.#records,
        sender,
        clock,
        log,
        onAttempt: (report) => this.#attempted(report),
        mayStart: () => permits.mayStart(this.#use, has_lease(), again),
      },
    );
  }

  async start(): Promise<void> {
    await this.#dispatcher.start();
  }

  get is_healthy(): boolean {
    return this.#dispatcher.endpointHealth().healthy;
  }

  get under_way(): number {
    return this.#use.under_way;
  }

  /** Records were added. */
  committed(): void {
    this.#records.committed();
  }

  /** A record was made due by somebody, or what held attempts up is over. */
  refresh(): void {
    this.#dispatcher.refresh();
  }

  /** What a look at the database told of the endpoint. */
  polled({ newest_untried_id, first_due_ms }: PendingEndpoint): void {
    this.#polls += 1;
    if (newest_untried_id !== this.#newest_untried_id) this.#looks = LOOKS_AFTER_NEWS;
    this.#newest_untried_id = newest_untried_id;
    if (newest_untried_id !== null && (this.#looks > 0 || this.#polls % LOOK_EVERY === 0)) {
      this.#looks -= 1;
      this.#records.committed();
    }
    if (first_due_ms !== null && first_due_ms <= this.#records.now()) this.#dispatcher.refresh();
  }

  /** Starts no further attempt. */
  pause(): void {
    this.#dispatcher.pause();
  }

  async stop(): Promise<void> {
    this.#parts.permits.forget(this.#use);
    await this.#dispatcher.stop();
  }

  #attempted(report: AttemptReport): void {
    const verdict = endpointVerdict(report.result);
    if (verdict !== 'nothing') this.#use.is_failing = verdict === 'down';
    this.#parts.on_attempt(report);
  }
}
