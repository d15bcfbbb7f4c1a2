import { type Clock, runTime } from '../base/clock.ts';
import { traceOf } from '../base/http/trace-context.ts';
import type { Log } from '../base/log.ts';
import type { DeliveryState } from '../contract/deliveries.ts';
import { type AttemptResult, decide, endpointVerdict, retryAfterMs } from '../webhook/retry.ts';
import type { Verdict } from './endpoint.ts';
import type { Sender } from './sender.ts';
import type { AttemptOutcome, DeliveryStore, DueRecord, LoadedRecord } from './store.ts';

/** The log line of a record that is not delivered. Source: contract section 8. */
const ENDED = {
  failed: 'a delivery failed for good: the record is kept and can be replayed',
  expired: 'a delivery expired: its delivery window has ended; the record is kept and can be replayed',
};

/** An attempt that has ended, for metrics. */
export interface AttemptReport {
  record: DueRecord;
  result: AttemptResult;
  /** The record's state after it. */
  state: DeliveryState;
  duration_ms: number;
}

/** What `Attempts` works with. */
export interface AttemptsParts<Loaded extends LoadedRecord> {
  store: DeliveryStore<Loaded>;
  sender: Sender<Loaded>;
  clock: Clock;
  log: Log;
  /** In [0, 1). */
  random: () => number;
  /** An attempt starts, before its record is loaded; the returned function is called when it has ended. */
  onStarted?: (() => () => void) | undefined;
  /** An attempt has ended; its outcome may not be on disk yet. */
  onEnded: (report: AttemptReport, verdict: Verdict) => void;
  /** The outcome of an attempt is on disk. */
  onRecorded: (outcome: AttemptOutcome) => void;
}

/**
 * The attempts in flight: load, send, decide, record. An attempt is in flight until the receiver's answer or its timeout,
 * then `unrecorded` until its outcome is on disk; one that `stop` cuts off has no outcome.
 */
export class Attempts<Loaded extends LoadedRecord> {
  readonly #parts: AttemptsParts<Loaded>;
  #under_way = 0;
  #retries_under_way = 0;
  #unrecorded = 0;
  #is_stopped = false;
  /** Callbacks that wait for an outcome, by the record's event id. */
  readonly #waiting = new Map<string, () => void>();

  constructor(parts: AttemptsParts<Loaded>) {
    this.#parts = parts;
  }

  /** Attempts that have not ended. */
  get under_way(): number {
    return this.#under_way;
  }

  /** Those among them whose record was tried before. */
  get retries_under_way(): number {
    return this.#retries_under_way;
  }

  /** Attempts that have ended and whose outcome is not on disk yet. */
  get unrecorded(): number {
    return this.#unrecorded;
  }

  /** Makes one attempt and records its outcome; resolves when the attempt has ended. Never rejects. */
  async run(record: DueRecord): Promise<Verdict> {
    const { store, sender, clock } = this.#parts;
    const is_retry = record.attempts > 0;
    this.#under_way += 1;
    if (is_retry) this.#retries_under_way += 1;
    const attempt = record.attempts + 1;
    const started_ms = store.now();
    const started_at_ms = clock.wallMs();
    const began_ms = clock.monotonicMs();
    const end = this.#parts.onStarted?.();
    const loading = store.load(record);
    const loaded = loading instanceof Promise ? await loading : loading;
    const result = loaded && (await sender.send(loaded, attempt, started_at_ms));
    end?.();
    // Aborted by our own `stop`, which says nothing about the receiver: the record is sent again after the next start.
    if (!result || (this.#is_stopped && result.status === null)) return 'nothing';
    const duration_ms = clock.monotonicMs() - began_ms;
    const times = { started_ms, ended_ms: store.now(), deadline_ms: record.deadline_ms };
    const asked_ms = retryAfterMs(result.retry_after, clock.wallMs());
    const decision = decide(result, times, record.failures + 1, asked_ms, this.#parts.random());
    const { status, error, error_detail, response_body } = result;
    this.#record(loaded, {
      id: record.id,
      attempt,
      started_at_ms,
      duration_ms,
      status,
      error,
      error_detail,
      response_body,
      decision,
    });
    this.#under_way -= 1;
    if (is_retry) this.#retries_under_way -= 1;
    const verdict = endpointVerdict(result);
    this.#parts.onEnded({ record, result, state: decision.state, duration_ms }, verdict);
    return verdict;
  }

  #record(record: LoadedRecord, outcome: AttemptOutcome): void {
    this.#unrecorded += 1;
    void this.#parts.store.record(outcome).then(() => {
      this.#unrecorded -= 1;
      const { decision, attempt, status, error, error_detail } = outcome;
      if (decision.state === 'failed' || decision.state === 'expired') {
        const { event_id, event_type, headers } = record;
        const facts = { event_id, event_type, attempt, status, error, error_detail, ...traceOf(headers) };
        this.#parts.log.warn(facts, ENDED[decision.state]);
      }
      this.#waiting.get(record.event_id)?.();
      this.#parts.onRecorded(outcome);
    });
  }

  /** Resolves when an attempt at a record has ended and its outcome is on disk, or after `within_ms`. */
  async recorded(event_id: string, within_ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const done = () => {
        timer.cancel();
        this.#waiting.delete(event_id);
        resolve();
      };
      const timer = runTime(this.#parts.clock).after(within_ms, done);
      this.#waiting.set(event_id, done);
    });
  }

  /** Aborts the attempts in flight; their records are sent again after the next start. Idempotent. */
  async stop(): Promise<void> {
    this.#is_stopped = true;
    await this.#parts.sender.close();
  }
}
