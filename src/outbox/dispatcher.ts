import { type Clock, runTime, type Timer } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Service } from '../base/service.ts';
import type { EndpointView } from '../contract/deliveries.ts';
import type { Verdict } from '../webhook/retry.ts';
import { type AttemptReport, Attempts, type AttemptsParts, type Retry } from './attempts.ts';
import { Endpoint } from './endpoint.ts';
import { EndpointProbe } from './probe.ts';
import type { DeliveryStore, DueRecord, LoadedRecord } from './store.ts';
import { DeliveryWindow } from './window.ts';

/** While more outcomes than this wait for the disk, no attempt is started. */
const UNRECORDED_MAX = 1_000;
/** The wait before the store is read again after a failure. */
const STORE_RETRY_MS = 1_000;

/** The settings of a dispatcher. */
export interface DispatcherOptions {
  /** The maximum number of attempts in flight. */
  concurrency: number;
}

/** The dependencies of a dispatcher. */
export interface DispatcherParts<Loaded extends LoadedRecord>
  extends Pick<AttemptsParts<Loaded>, 'store' | 'sender' | 'clock' | 'log' | 'retryOf' | 'onStarted'> {
  /** In [0, 1); `Math.random` by default. */
  random?: () => number;
  onAttempt?: (report: AttemptReport) => void;
  /**
   * Whether one more attempt may start beside the `under_way` ones. After a refusal, `wake()` must be called when
   * capacity becomes available.
   */
  mayStart?: (under_way: number) => boolean;
}

/**
 * Due records → attempts → outcomes, for one endpoint. The store's rows are the truth: memory holds a bounded window
 * of them, and every wake-up is only a hint to read them. Source: contract section 3.
 *
 * | State | Entered by | Left by |
 * |---|---|---|
 * | idle | construction | `start` |
 * | running | `start` | `pause`, `stop` |
 * | paused: no attempt starts, those under way end | `pause` | `start`, `stop` |
 * | stopped: attempts under way are given up | `stop` | – |
 *
 * While running, the endpoint is healthy, backed off (only overdue records and one probe per step are attempted), or
 * recovering: healthy again, and waiting for the retries that became due meanwhile, which go before untried records.
 */
export class Dispatcher<Loaded extends LoadedRecord = LoadedRecord> implements Service {
  readonly #options: DispatcherOptions;
  readonly #store: DeliveryStore<Loaded>;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #onAttempt: (report: AttemptReport) => void;
  readonly #hasCapacity: (under_way: number) => boolean;
  readonly #endpoint: Endpoint;
  readonly #attempts: Attempts<Loaded>;
  readonly #window: DeliveryWindow;
  readonly #probe: EndpointProbe;

  #is_recovering = false;
  #is_running = false;
  #timer: Timer | null = null;
  #onIdle: (() => void)[] = [];

  constructor(options: DispatcherOptions, parts: DispatcherParts<Loaded>) {
    const { store, sender, clock, log, retryOf, random = Math.random } = parts;
    this.#options = options;
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
    this.#onAttempt = parts.onAttempt ?? (() => {});
    this.#hasCapacity = parts.mayStart ?? (() => true);
    this.#attempts = new Attempts({
      store,
      sender,
      clock,
      log,
      random,
      retryOf,
      onStarted: parts.onStarted,
      onEnded: (report, verdict) => this.#onEnded(report, verdict),
      onRecorded: (id, retry) => this.#onRecorded(id, retry),
      onDue: (id) => {
        this.#window.noteDue(id);
        this.#startAttempts();
      },
    });
    this.#window = new DeliveryWindow(store, {
      onUntried: () => this.#probe.wake(),
      onReleased: (id) => {
        this.#attempts.leave(id);
        store.release?.(id);
      },
    });
    this.#probe = new EndpointProbe({
      window: this.#window,
      clock,
      now: () => store.now(),
      mayStart: () => this.#mayStart(),
      attempt: (record) => this.#attempts.run(record),
    });
    const probe = (signal: AbortSignal) => this.#probe.run(signal);
    this.#endpoint = new Endpoint(clock, random, probe, () => this.#recovered());
    store.onRecordsAdded({
      hasRoom: () => this.#window.hasRoom(),
      onAdded: (records) => {
        this.#window.add(records);
        this.#startAttempts();
      },
    });
  }

  /** The endpoint's health, as `GET /sandbox` shows it. Source: contract section 4. */
  endpointHealth(): EndpointView {
    return this.#endpoint.view();
  }

  /** Whether more untried records wait for a healthy endpoint than it has connections. */
  get is_busy(): boolean {
    if (!this.#is_running || !this.#endpoint.is_healthy) return false;
    return this.#window.untried_count > this.#options.concurrency;
  }

  /** Starts attempts, also after `pause`. */
  async start(): Promise<void> {
    this.#is_running = true;
    this.refresh();
  }

  /** Starts no further attempt and ends every `flush`; attempts under way run to their end. `start` undoes it. */
  pause(): void {
    this.#is_running = false;
    this.#timer?.cancel();
    for (const onIdle of this.#onIdle.splice(0)) onIdle();
  }

  /** Aborts the attempts in flight; their records are sent again after the next start. Idempotent. */
  async stop(): Promise<void> {
    this.pause();
    this.#endpoint.stop();
    await this.#attempts.stop();
  }

  /** Reads due records from the store again, for example after a replay. */
  refresh(): void {
    this.#window.forgetDueTime();
    this.wake();
  }

  /** Starts the attempts that may start now, as after `mayStart` refused one; does not read due times again. */
  wake(): void {
    this.#startAttempts();
    this.#probe.wake();
  }

  /** Resolves when an attempt at a record has ended and its outcome is on disk, or after `within_ms`. */
  async attempted(event_id: string, within_ms: number): Promise<void> {
    await this.#attempts.recorded(event_id, within_ms);
  }

  /** Resolves when nothing more can be delivered within `within_ms`, at the latest after that time or with `pause`. */
  async flush(within_ms: number): Promise<void> {
    const time = runTime(this.#clock);
    const end_ms = time.monotonicMs() + within_ms;
    while (this.#canDeliverWithin(end_ms - time.monotonicMs())) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = time.after(end_ms - time.monotonicMs(), resolve);
      this.#onIdle.push(resolve);
      await promise;
      timer.cancel();
    }
  }

  #canDeliverWithin(left_ms: number): boolean {
    if (left_ms <= 0 || !this.#is_running) return false;
    if (this.#attempts.under_way > 0 || this.#attempts.unrecorded > 0 || this.#window.is_refilling)
      return true;
    const { is_healthy, next_probe_ms } = this.#endpoint;
    if (!is_healthy && next_probe_ms - this.#clock.monotonicMs() > left_ms) return false;
    const { untried_count, retry_count, is_behind, next_due_ms } = this.#window;
    const due_in_ms = next_due_ms - this.#store.now();
    return untried_count + retry_count > 0 || is_behind || due_in_ms < left_ms;
  }

  /** Starts the attempts that may start now, then refills the window or sets the timer for what is due next. */
  #startAttempts(): void {
    if (!this.#is_running) return;
    if (!this.#endpoint.is_healthy) this.#window.releaseRetries();
    while (this.#mayStart()) {
      const record = this.#takeNext();
      if (!record) break;
      void this.#attempts.run(record);
    }
    if (this.#window.needsRefill(this.#endpoint.is_healthy)) void this.#refill();
    else this.#schedule();
    if (this.#attempts.under_way === 0) for (const onIdle of this.#onIdle.splice(0)) onIdle();
  }

  #mayStart(): boolean {
    if (!this.#is_running || this.#attempts.unrecorded >= UNRECORDED_MAX) return false;
    return (
      this.#attempts.under_way < this.#options.concurrency && this.#hasCapacity(this.#attempts.under_way)
    );
  }

  /** The next record to attempt; retries leave half of the connections to untried records. */
  #takeNext(): DueRecord | null {
    if (!this.#endpoint.is_healthy) return this.#window.takeOverdue();
    if (this.#is_recovering) return null;
    const { concurrency } = this.#options;
    const share = this.#window.untried_count > 0 ? Math.ceil(concurrency / 2) : concurrency;
    const retry = this.#attempts.retries_under_way < share ? this.#window.takeRetry() : null;
    return retry ?? this.#window.takeUntried();
  }

  async #refill(): Promise<void> {
    try {
      if (!(await this.#window.refill(() => this.#endpoint.is_healthy))) return;
      this.#is_recovering = false;
      this.#startAttempts();
    } catch (error) {
      this.#is_recovering = false;
      this.#log.warn({ reason: (error as Error).message }, 'the outbox cannot be read; retrying');
      this.#schedule(STORE_RETRY_MS);
    }
  }

  /** One timer, for whatever is due first. */
  #schedule(at_least_ms = 0): void {
    this.#timer?.cancel();
    this.#timer = null;
    const { is_healthy } = this.#endpoint;
    const wake_ms = this.#window.nextWakeMs(is_healthy, !is_healthy && this.#mayStart());
    const is_never = wake_ms === Number.POSITIVE_INFINITY;
    if (at_least_ms === 0 && (is_never || this.#window.is_refilling)) return;
    const delay_ms = Math.max(at_least_ms, is_never ? 0 : wake_ms - this.#store.now());
    this.#timer = this.#clock.after(delay_ms, () => this.#startAttempts());
  }

  #onEnded(report: AttemptReport, verdict: Verdict): void {
    this.#endpoint.observe(verdict, report.record, report.result.status);
    this.#probe.wake();
    this.#onAttempt(report);
    this.#startAttempts();
  }

  /**
   * A record stays in flight until its outcome is on disk: a disk that fails must not cause it to be sent again. Of a healthy
   * endpoint it then waits here for its retry, if there is room; one that backs off may want it as its probe.
   */
  #onRecorded(id: number, retry: Retry | null): boolean {
    const waits = this.#is_running && this.#endpoint.is_healthy;
    const is_kept = waits && retry !== null && this.#window.keep(retry.record, retry.due_ms);
    if (!is_kept) this.#window.release(id);
    if (retry) {
      if (!is_kept) this.#window.noteRetry(retry.due_ms);
      this.#probe.wake();
    }
    this.#startAttempts();
    return is_kept;
  }

  #recovered(): void {
    this.#window.forgetDueTime();
    this.#is_recovering = this.#window.retry_count === 0;
    this.#startAttempts();
  }
}
