import pRetry from 'p-retry';
import { type Clock, runTime } from '../base/clock.ts';
import { traceOf } from '../base/http/trace-context.ts';
import type { Log } from '../base/log.ts';
import { OWN_WAITS } from '../base/own-waits.ts';
import type { DeliveryState, WebhookRetry } from '../contract/words.ts';
import {
  type AttemptResult,
  type Decision,
  decide,
  endpointVerdict,
  retryAfterMs,
  type Verdict,
} from '../webhook/retry.ts';
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
  /** Which refused attempts at a record are made again. */
  retryOf: (record: Loaded) => WebhookRetry;
  /** An attempt starts, before its record is loaded; the returned function is called when it has ended. */
  onStarted?: (() => () => void) | undefined;
  /** An attempt has ended; its outcome may not be on disk yet. */
  onEnded: (report: AttemptReport, verdict: Verdict) => void;
  /**
   * The outcome of an attempt is on disk. `retry` is the record that is to be tried again, or null; returns whether it waits
   * for that here. Otherwise it leaves the window.
   */
  onRecorded: (id: number, retry: Retry | null) => boolean;
  /** A record that waits here is due. */
  onDue: (id: number) => void;
}

/** A record after a failed attempt. `due_ms`: when it is due again, on the store's clock. */
export interface Retry {
  record: DueRecord;
  due_ms: number;
}

/** A record from its first attempt here until it is delivered, final, or leaves the window. */
interface Delivery {
  record: DueRecord;
  /** Called with the verdict of the attempt that was started last. */
  onVerdict: (verdict: Verdict) => void;
  /** Whether another attempt follows here. */
  goes_on: boolean;
}

/** A delivery that waits for its next attempt. */
interface Turn {
  delivery: Delivery;
  end: (goes_on: boolean) => void;
}

/**
 * The deliveries in the window: load, send, decide, record, and that again while the record's class says so. p-retry
 * repeats; the row is the truth, and each wait ends when the row says that its record is due. An attempt is under way until
 * the receiver's answer or its timeout, then `unrecorded` until its outcome is on disk; one that `stop` cuts off has no
 * outcome.
 */
export class Attempts<Loaded extends LoadedRecord> {
  readonly #parts: AttemptsParts<Loaded>;
  #under_way = 0;
  #retries_under_way = 0;
  #unrecorded = 0;
  #is_stopped = false;
  /** Callbacks that wait for an outcome, by the record's event id. */
  readonly #waiting = new Map<string, () => void>();
  /** Deliveries that wait for their next attempt, by the record's id. */
  readonly #turns = new Map<number, Turn>();

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

  /**
   * Starts an attempt, the first of a delivery or the next of one that waits here; resolves to its verdict when it has
   * ended. Never rejects.
   */
  run(record: DueRecord): Promise<Verdict> {
    this.#under_way += 1;
    if (record.attempts > 0) this.#retries_under_way += 1;
    return new Promise((onVerdict) => {
      const turn = this.#turns.get(record.id);
      if (!turn) return void this.#deliver({ record, onVerdict, goes_on: true });
      turn.delivery.onVerdict = onVerdict;
      turn.end(true);
    });
  }

  /** Ends a delivery that waits here: its record has left the window. */
  leave(id: number): void {
    this.#turns.get(id)?.end(false);
  }

  async #deliver(delivery: Delivery): Promise<void> {
    try {
      await pRetry(() => this.#attempt(delivery), {
        ...OWN_WAITS,
        onFailedAttempt: ({ error }) => this.#failed(delivery, error as FailedAttempt),
        shouldRetry: ({ error }) => delivery.goes_on && (error as FailedAttempt).is_transient,
      });
    } catch (error) {
      if (!(error instanceof FailedAttempt)) throw error;
    }
  }

  /** One attempt. Throws `FailedAttempt` unless the record is delivered, or the attempt was cut off. */
  async #attempt(delivery: Delivery): Promise<void> {
    const { store, sender, clock } = this.#parts;
    const { record, onVerdict } = delivery;
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
    if (!result || (this.#is_stopped && result.status === null)) return onVerdict('nothing');
    const duration_ms = clock.monotonicMs() - began_ms;
    const times = { started_ms, ended_ms: store.now(), deadline_ms: record.deadline_ms };
    const asked_ms = retryAfterMs(result.retry_after, clock.wallMs());
    const decision = decide(
      result,
      times,
      record.failures + 1,
      asked_ms,
      this.#parts.random(),
      this.#parts.retryOf(loaded),
    );
    const { status, error, error_detail, response_body } = result;
    const { id } = record;
    const response = { status, error, error_detail, response_body };
    const outcome = { id, attempt, started_at_ms, duration_ms, ...response, decision };
    this.#unrecorded += 1;
    this.#under_way -= 1;
    if (record.attempts > 0) this.#retries_under_way -= 1;
    const verdict = endpointVerdict(result);
    this.#parts.onEnded({ record, result, state: decision.state, duration_ms }, verdict);
    onVerdict(verdict);
    const { event_id } = loaded;
    if (decision.state !== 'delivered') {
      throw new FailedAttempt(outcome, {
        event_id,
        event_type: loaded.event_type,
        ...traceOf(loaded.headers),
      });
    }
    void this.#write(event_id, outcome).then(() => this.#parts.onRecorded(id, null));
  }

  /** Records a failed attempt. Where another one follows here, waits until it may start, or the record leaves the window. */
  async #failed(delivery: Delivery, { outcome, facts }: FailedAttempt): Promise<void> {
    await this.#write(facts.event_id, outcome);
    const { id, attempt, decision, status, error, error_detail } = outcome;
    if (decision.state === 'failed' || decision.state === 'expired') {
      this.#parts.log.warn({ ...facts, attempt, status, error, error_detail }, ENDED[decision.state]);
    }
    const retry = decision.state === 'pending' ? afterAttempt(delivery.record, attempt, decision) : null;
    delivery.goes_on = this.#parts.onRecorded(id, retry);
    if (!delivery.goes_on || !retry) return;
    delivery.record = retry.record;
    delivery.goes_on = await this.#turn(delivery, retry.due_ms);
  }

  async #write(event_id: string, outcome: AttemptOutcome): Promise<void> {
    await this.#parts.store.record(outcome);
    this.#unrecorded -= 1;
    this.#waiting.get(event_id)?.();
  }

  /** Waits for `run`, or `leave`: resolves to whether the delivery goes on. Calls `onDue` at `due_ms` of the store's clock. */
  #turn(delivery: Delivery, due_ms: number): Promise<boolean> {
    const { store, clock, onDue } = this.#parts;
    const { id } = delivery.record;
    return new Promise((resolve) => {
      const arm = () =>
        clock.after(due_ms - store.now(), () => {
          if (store.now() >= due_ms) onDue(id);
          // A timer may be early, and the store's clock may have been set back.
          else timer = arm();
        });
      let timer = arm();
      const end = (goes_on: boolean) => {
        timer.cancel();
        this.#turns.delete(id);
        resolve(goes_on);
      };
      this.#turns.set(id, { delivery, end });
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
    for (const id of [...this.#turns.keys()]) this.leave(id);
    await this.#parts.sender.close();
  }
}

/** An attempt after which its record is not delivered. It is kept while its record waits, so it holds nothing of the request. */
class FailedAttempt extends Error {
  readonly outcome: AttemptOutcome;
  /** The record's part of its log line. */
  readonly facts: { event_id: string; event_type: string; trace_id?: string };

  constructor(outcome: AttemptOutcome, facts: FailedAttempt['facts']) {
    super('the record is not delivered');
    this.outcome = outcome;
    this.facts = facts;
  }

  /** Whether the record's class is to be tried again. */
  get is_transient(): boolean {
    return this.outcome.decision.state === 'pending';
  }
}

/** A record after a failed attempt, apart from the memory that it was read with, because it may wait long. */
function afterAttempt(
  record: DueRecord | LoadedRecord,
  attempts: number,
  { due_ms, probe_ms }: Extract<Decision, { state: 'pending' }>,
): Retry {
  const { id, event_id, event_type, body_bytes, failures, deadline_ms, created_at_ms } = record;
  const due = { id, event_id, event_type, body_bytes, attempts, failures: failures + 1 };
  const again = { ...due, deadline_ms, probe_ms, created_at_ms };
  if (!('body' in record)) return { record: again, due_ms };
  const { headers, body } = record;
  const request = { headers, body: typeof body === 'string' ? body : Buffer.from(body) };
  return { record: { ...again, ...request }, due_ms };
}
