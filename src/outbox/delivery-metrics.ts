import { Counter, Histogram, type Metric } from '../base/metrics.ts';
import type { AttemptReport } from './attempts.ts';

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** The delivery metrics of both engines, under the same names. Source: contract section 8. */
export class DeliveryMetrics {
  readonly #enqueued = new Counter('enqueued_total', 'Records committed.', ['event_type']);
  readonly #attempts = new Counter('delivery_attempts_total', 'Delivery attempts that have ended.', [
    'outcome',
    'class',
  ]);
  readonly #attempt_seconds = new Histogram(
    'delivery_duration_seconds',
    'Duration of a delivery attempt.',
    SECONDS,
  );
  readonly #end_to_end_seconds = new Histogram(
    'end_to_end_seconds',
    'Time from commit to delivery.',
    SECONDS,
  );

  /** Counts committed records, by their event types. */
  countEnqueued(event_types: readonly string[]): void {
    for (const event_type of event_types) this.#enqueued.add([event_type]);
  }

  /**
   * Counts an attempt that has ended at `wall_ms`. `outcome` is the record's state after it, `retry` for one that stays
   * pending; `class` is `2xx` and so on, or the error.
   */
  observeAttempt({ record, result, state, duration_ms }: AttemptReport, wall_ms: number): void {
    const { status, error } = result;
    const status_class = status === null ? (error ?? '') : `${Math.floor(status / 100)}xx`;
    this.#attempts.add([state === 'pending' ? 'retry' : state, status_class]);
    this.#attempt_seconds.observe(duration_ms / 1000);
    if (state !== 'delivered') return;
    this.#end_to_end_seconds.observe(Math.max(0, wall_ms - record.created_at_ms) / 1000);
  }

  /** The metrics, for the registry. */
  metrics(): Metric[] {
    return [this.#enqueued, this.#attempts, this.#attempt_seconds, this.#end_to_end_seconds];
  }
}
