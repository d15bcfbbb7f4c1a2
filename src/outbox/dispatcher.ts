import type { Clock, Timer } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Service } from '../base/service.ts';
import type { DeliveryState } from '../contract/deliveries.ts';
import { type AttemptResult, decide, endpointVerdict, retryAfterMs } from '../webhook/retry.ts';
import { Endpoint, type Verdict } from './endpoint.ts';
import type { Sender } from './sender.ts';
import type { AttemptOutcome, DeliveryStore, DueRecord } from './store.ts';

/** What the log says of a record that is not delivered: one line each. Source: contract section 8. */
const ENDED = {
  failed: 'a delivery failed for good: the record is kept and can be replayed',
  expired: 'a delivery expired: its window is over; the record is kept and can be replayed',
};

/** Records in memory that wait for their first attempt: enough to keep every connection busy, whatever the backlog. */
const WINDOW_RECORDS = 1_024;
const WINDOW_BYTES = 4 * 1024 * 1024;
/** So many are read at once: while more of them are taken over, attempts that have ended would wait. */
const READ_RECORDS = 128;
/** Retries are looked up so many at a time. */
const RETRY_RECORDS = 64;
/** With so many outcomes that the disk has not taken, no attempt is started. */
const UNRECORDED_MAX = 1_000;
/** How long until the store is asked again after it was out of order. */
const STORE_RETRY_MS = 1_000;
const FOREVER = Number.POSITIVE_INFINITY;

export interface DispatcherOptions {
  concurrency: number;
}

/** An attempt that has ended, for whoever keeps figures. */
export interface AttemptReport {
  record: DueRecord;
  result: AttemptResult;
  state: DeliveryState;
  duration_ms: number;
}

interface Parts {
  store: DeliveryStore;
  sender: Sender;
  clock: Clock;
  log: Log;
  random?: () => number;
  on_attempt?: (report: AttemptReport) => void;
  /** Whether one more attempt may start beside so many under way; whoever says no calls `wake` when that changes. */
  may_start?: (under_way: number) => boolean;
}

/**
 * Due records → attempts → outcomes, for one endpoint. The store's rows are the truth: what is in memory is a bounded
 * window of them, and every wake-up is only a hint to look. Source: contract section 3.
 */
export class Dispatcher implements Service {
  readonly #options: DispatcherOptions;
  readonly #store: DeliveryStore;
  readonly #sender: Sender;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #random: () => number;
  readonly #on_attempt: (report: AttemptReport) => void;
  readonly #may_start: (under_way: number) => boolean;
  readonly #endpoint: Endpoint;

  /** Never tried, in commit order. `#last_read_id` is the last that was put there. */
  #untried: DueRecord[] = [];
  #untried_bytes = 0;
  #last_read_id = 0;
  /** There may be more on disk than in `#untried`. */
  #is_behind = true;
  #is_reading = false;
  /** Due retries, in commit order. */
  #retries: DueRecord[] = [];
  #next_due_ms = 0;
  #next_deadline_ms = 0;
  /** The endpoint is back and what failed meanwhile is being read: it comes before what was never tried. */
  #is_recovering = false;
  /** Read from the store and not yet settled there: not to be taken from it again. */
  readonly #held = new Set<number>();
  #under_way = 0;
  #retries_under_way = 0;
  #unrecorded = 0;
  #is_running = false;
  #is_stopped = false;
  #is_looking = false;
  #looks_again = false;
  #timer: Timer | null = null;
  #waiting_probe: (() => void) | null = null;
  /** Counts what a waiting probe would be woken by: what comes while it looks must not be missed. */
  #probe_news = 0;
  #idle: (() => void)[] = [];
  /** Who waits for an attempt, by the record's event id. */
  readonly #attempted = new Map<string, () => void>();

  constructor(options: DispatcherOptions, parts: Parts) {
    this.#options = options;
    this.#store = parts.store;
    this.#sender = parts.sender;
    this.#clock = parts.clock;
    this.#log = parts.log;
    this.#random = parts.random ?? Math.random;
    this.#on_attempt = parts.on_attempt ?? (() => {});
    this.#may_start = parts.may_start ?? (() => true);
    this.#endpoint = new Endpoint(
      parts.clock,
      this.#random,
      (signal) => this.#probe(signal),
      () => this.#recovered(),
    );
    this.#store.onCommitted(
      () => this.#hasRoom(),
      (records) => this.#committed(records),
    );
  }

  /** For `GET /sandbox`. Source: contract section 4. */
  endpointHealth(): { healthy: boolean; next_probe_at: string | null } {
    return { healthy: this.#endpoint.is_healthy, next_probe_at: this.#endpoint.next_probe_at };
  }

  /** Records that wait for a free connection to a healthy endpoint: more than this are queueing up. */
  get is_busy(): boolean {
    return this.#is_running && this.#endpoint.is_healthy && this.#untried.length > this.#options.concurrency;
  }

  async start(): Promise<void> {
    this.#is_running = true;
    this.look();
  }

  /** Starts no further attempt; what is under way goes on. `start` undoes it. */
  pause(): void {
    this.#is_running = false;
    this.#timer?.cancel();
  }

  /** Gives up what is under way: it is sent again after the next start. */
  async stop(): Promise<void> {
    this.pause();
    this.#is_stopped = true;
    this.#endpoint.stop();
    await this.#sender.close();
  }

  /** Looks what is due, as after a replay. */
  look(): void {
    this.#next_due_ms = 0;
    this.#turn();
    this.#wakeProbe();
  }

  /** Starts what may start now, as after `may_start` said no; the store is not asked for it. */
  wake(): void {
    this.#turn();
    this.#wakeProbe();
  }

  /** Resolves when an attempt at a record has ended and is on disk, or after `within_ms`. */
  async attempted(event_id: string, within_ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const done = () => {
        timer.cancel();
        this.#attempted.delete(event_id);
        resolve();
      };
      const timer = this.#clock.after(within_ms, done);
      this.#attempted.set(event_id, done);
    });
  }

  /** Waits until nothing more can be delivered within `within_ms`, and no longer. */
  async flush(within_ms: number): Promise<void> {
    const end_ms = this.#clock.monotonicMs() + within_ms;
    while (this.#canDeliverBefore(end_ms)) {
      await new Promise<void>((resolve) => {
        const timer = this.#clock.after(end_ms - this.#clock.monotonicMs(), resolve);
        this.#idle.push(() => {
          timer.cancel();
          resolve();
        });
      });
    }
  }

  #canDeliverBefore(end_ms: number): boolean {
    const now_ms = this.#clock.monotonicMs();
    if (now_ms >= end_ms || !this.#is_running) return false;
    if (this.#under_way > 0 || this.#unrecorded > 0 || this.#is_looking) return true;
    const probe_ms = this.#endpoint.is_healthy ? now_ms : this.#endpoint.next_probe_ms;
    if (probe_ms > end_ms) return false;
    const due_in_ms = this.#next_due_ms - this.#store.now();
    return this.#untried.length + this.#retries.length > 0 || this.#is_behind || now_ms + due_in_ms < end_ms;
  }

  #hasRoom(): boolean {
    // What is committed while older records are being read comes after them.
    if (this.#is_behind || this.#is_reading) return false;
    return this.#untried.length < WINDOW_RECORDS && this.#untried_bytes < WINDOW_BYTES;
  }

  /** Whether the window is to be filled up again, if there is more. */
  #isLow(): boolean {
    return this.#untried.length <= WINDOW_RECORDS - READ_RECORDS && this.#untried_bytes < WINDOW_BYTES;
  }

  #committed(records: DueRecord[] | null): void {
    if (records && this.#hasRoom()) this.#take(records);
    else this.#is_behind = true;
    this.#turn();
  }

  #take(records: DueRecord[]): void {
    for (const record of records) {
      if (record.id <= this.#last_read_id) continue;
      this.#last_read_id = record.id;
      this.#untried.push(record);
      this.#untried_bytes += record.body.length;
    }
    this.#wakeProbe();
  }

  /** Starts what may start now, and sees to it that the rest gets its turn. */
  #turn(): void {
    if (!this.#is_running) return;
    if (!this.#endpoint.is_healthy) this.#releaseRetries();
    while (this.#mayStart()) {
      const record = this.#next();
      if (!record) break;
      void this.#attempt(record);
    }
    if (this.#mustLook()) void this.#look();
    else this.#schedule();
    if (this.#under_way === 0) for (const idle of this.#idle.splice(0)) idle();
  }

  #mayStart(): boolean {
    if (!this.#is_running || this.#unrecorded >= UNRECORDED_MAX) return false;
    return this.#under_way < this.#options.concurrency && this.#may_start(this.#under_way);
  }

  /** The next record to attempt, lowest first; retries leave half of the connections to what was never tried. */
  #next(): DueRecord | null {
    const now_ms = this.#store.now();
    const [retry] = this.#retries;
    const [untried] = this.#untried;
    if (!this.#endpoint.is_healthy) {
      // The one last attempt at a window's end is owed whatever the endpoint's health.
      if (retry && retry.deadline_ms <= now_ms) return this.#takeRetry();
      return untried && untried.deadline_ms <= now_ms ? this.#takeUntried() : null;
    }
    if (this.#is_recovering) return null;
    const share = untried ? Math.ceil(this.#options.concurrency / 2) : this.#options.concurrency;
    if (retry && this.#retries_under_way < share) return this.#takeRetry();
    return untried ? this.#takeUntried() : null;
  }

  #takeRetry(): DueRecord | null {
    const record = this.#retries.shift() ?? null;
    if (record) this.#retries_under_way += 1;
    return record;
  }

  #takeUntried(): DueRecord | null {
    const record = this.#untried.shift() ?? null;
    if (!record) return null;
    this.#untried_bytes -= record.body.length;
    this.#held.add(record.id);
    return record;
  }

  /** While the endpoint backs off, only what is overdue is kept ready: the rest may be wanted as the probe. */
  #releaseRetries(): void {
    const now_ms = this.#store.now();
    const released = this.#retries.filter(({ deadline_ms }) => deadline_ms > now_ms);
    if (released.length === 0) return;
    for (const { id } of released) this.#held.delete(id);
    this.#retries = this.#retries.filter(({ deadline_ms }) => deadline_ms <= now_ms);
    this.#next_due_ms = 0;
  }

  #mustLook(): boolean {
    if (this.#is_behind && this.#isLow()) return true;
    const now_ms = this.#store.now();
    if (this.#endpoint.is_healthy) return this.#retries.length === 0 && this.#next_due_ms <= now_ms;
    return this.#retries.length === 0 && this.#next_deadline_ms <= now_ms;
  }

  /** Reads what is due from the store into the window. One look at a time. */
  async #look(): Promise<void> {
    if (this.#is_looking) {
      this.#looks_again = true;
      return;
    }
    this.#is_looking = true;
    try {
      do {
        this.#looks_again = false;
        await this.#readUntried();
        await this.#readRetries();
      } while (this.#looks_again);
      this.#is_looking = false;
      this.#is_recovering = false;
      this.#turn();
    } catch (error) {
      this.#is_looking = false;
      this.#is_recovering = false;
      this.#log.warn({ reason: (error as Error).message }, 'the outbox cannot be read; it is asked again');
      this.#schedule(STORE_RETRY_MS);
    }
  }

  async #readUntried(): Promise<void> {
    if (this.#is_reading || !this.#is_behind || !this.#isLow()) return;
    this.#is_reading = true;
    this.#is_behind = false;
    try {
      const { records, more } = await this.#store.untried(this.#last_read_id, READ_RECORDS);
      this.#take(records);
      this.#is_behind ||= more;
    } catch (error) {
      this.#is_behind = true;
      throw error;
    } finally {
      this.#is_reading = false;
    }
  }

  async #readRetries(): Promise<void> {
    if (this.#retries.length > 0) return;
    const limit = RETRY_RECORDS + this.#held.size;
    if (this.#endpoint.is_healthy) {
      if (this.#next_due_ms > this.#store.now()) return;
      this.#next_due_ms = FOREVER;
      try {
        const { records, next_due_ms } = await this.#store.due(limit);
        this.#next_due_ms = Math.min(this.#next_due_ms, next_due_ms ?? FOREVER);
        this.#takeRetries(records);
      } catch (error) {
        this.#next_due_ms = 0;
        throw error;
      }
    } else if (this.#next_deadline_ms <= this.#store.now()) {
      const { records, next_deadline_ms } = await this.#store.overdue(limit);
      this.#next_deadline_ms = next_deadline_ms ?? FOREVER;
      this.#takeRetries(records);
    }
  }

  #takeRetries(records: DueRecord[]): void {
    const fresh = records.filter(({ id }) => !this.#held.has(id));
    for (const { id } of fresh) this.#held.add(id);
    this.#retries.push(...fresh.sort((a, b) => a.id - b.id));
  }

  /** One timer for whatever is due first. */
  #schedule(at_least_ms = 0): void {
    this.#timer?.cancel();
    this.#timer = null;
    const wake_ms = this.#nextWakeMs();
    if (at_least_ms === 0 && (wake_ms === FOREVER || this.#is_looking)) return;
    const delay_ms = Math.max(at_least_ms, wake_ms === FOREVER ? 0 : wake_ms - this.#store.now());
    this.#timer = this.#clock.after(delay_ms, () => this.#turn());
  }

  /** When there is something to do that no end of an attempt will bring about. */
  #nextWakeMs(): number {
    const has_retries = this.#retries.length > 0;
    if (this.#endpoint.is_healthy) return has_retries ? FOREVER : this.#next_due_ms;
    const untried_ms = this.#mayStart() ? (this.#untried[0]?.deadline_ms ?? FOREVER) : FOREVER;
    return Math.min(has_retries ? FOREVER : this.#next_deadline_ms, untried_ms);
  }

  async #attempt(record: DueRecord): Promise<Verdict> {
    this.#under_way += 1;
    const is_retry = record.attempts > 0;
    const attempt = record.attempts + 1;
    const started_ms = this.#store.now();
    const started_at_ms = this.#clock.wallMs();
    const began_ms = this.#clock.monotonicMs();
    const result = await this.#sender.send(record, attempt, started_at_ms);
    // Cut off by our own stop, which says nothing about the receiver: it is sent again after the next start.
    if (this.#is_stopped && result.status === null) return 'nothing';
    const duration_ms = this.#clock.monotonicMs() - began_ms;
    const times = { started_ms, ended_ms: this.#store.now(), deadline_ms: record.deadline_ms };
    const asked_ms = retryAfterMs(result.retry_after, this.#clock.wallMs());
    const decision = decide(result, times, record.failures + 1, asked_ms, this.#random());
    const { status, error, response_body } = result;
    this.#keep(record, {
      id: record.id,
      attempt,
      started_at_ms,
      duration_ms,
      status,
      error,
      response_body,
      decision,
    });
    this.#under_way -= 1;
    if (is_retry) this.#retries_under_way -= 1;
    const verdict = endpointVerdict(result);
    this.#endpoint.observe(verdict);
    this.#wakeProbe();
    this.#on_attempt({ record, result, state: decision.state, duration_ms });
    this.#turn();
    return verdict;
  }

  /** The record stays held until its outcome is on disk: a disk that refuses must not cause it to be sent again. */
  #keep({ event_id, event_type }: DueRecord, outcome: AttemptOutcome): void {
    this.#unrecorded += 1;
    void this.#store.record(outcome).then(() => {
      this.#unrecorded -= 1;
      this.#held.delete(outcome.id);
      const { decision, attempt, status, error } = outcome;
      if (decision.state === 'failed' || decision.state === 'expired') {
        this.#log.warn({ event_id, event_type, attempt, status, error }, ENDED[decision.state]);
      }
      if (decision.state === 'pending') {
        this.#next_due_ms = Math.min(this.#next_due_ms, decision.due_ms);
        this.#next_deadline_ms = 0;
        this.#wakeProbe();
      }
      this.#attempted.get(event_id)?.();
      this.#turn();
    });
  }

  #wakeProbe(): void {
    this.#probe_news += 1;
    this.#waiting_probe?.();
  }

  /** One attempt while the endpoint backs off: the lowest never tried, else the retry that may go first. */
  async #probe(signal: AbortSignal): Promise<Verdict> {
    while (!signal.aborted) {
      const news = this.#probe_news;
      await this.#readUntried().catch(() => {});
      const is_tried = this.#untried.length === 0;
      const retry = is_tried ? await this.#store.probeCandidate([...this.#held]).catch(() => null) : null;
      // Meanwhile the endpoint may be up again, or the delivery paused.
      if (signal.aborted) break;
      const record = this.#mayStart() ? (this.#takeUntried() ?? this.#takeProbe(retry)) : null;
      if (record) return this.#attempt(record);
      const wait_ms = retry ? retry.probe_ms - this.#store.now() : 0;
      if (news !== this.#probe_news) continue;
      await this.#waitForProbe(wait_ms > 0 ? wait_ms : STORE_RETRY_MS * 30, signal);
    }
    return 'nothing';
  }

  /** A record that was tried before, if it may be the probe now. */
  #takeProbe(record: DueRecord | null): DueRecord | null {
    if (!record || record.probe_ms > this.#store.now() || this.#held.has(record.id)) return null;
    this.#held.add(record.id);
    this.#retries_under_way += 1;
    return record;
  }

  /** Until `delay_ms` has passed, a record arrives or is scheduled, an attempt ends, or `signal` aborts. */
  #waitForProbe(delay_ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        timer.cancel();
        signal.removeEventListener('abort', done);
        this.#waiting_probe = null;
        resolve();
      };
      const timer = this.#clock.after(Math.max(1, delay_ms), done);
      signal.addEventListener('abort', done);
      this.#waiting_probe = done;
    });
  }

  #recovered(): void {
    this.#next_due_ms = 0;
    this.#is_recovering = this.#retries.length === 0;
    this.#turn();
  }
}
