import { Counter, Histogram, type Metric } from '../../base/metrics.ts';
import type { AttemptReport } from '../../outbox/attempts.ts';

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** The metrics of the manager's delivery, under the same names as the daemon's. */
export class DeliveryMetrics {
  /** Committed records, by event type. */
  readonly enqueued = new Counter(['event_type']);
  readonly #attempts = new Counter(['outcome', 'class']);
  readonly #delivery_seconds = new Histogram(SECONDS);
  readonly #end_to_end_seconds = new Histogram(SECONDS);

  /** Counts an attempt that has ended; `wall_ms` is the current wall time. */
  attempted({ record, result, state, duration_ms }: AttemptReport, wall_ms: number): void {
    const outcome = state === 'pending' ? 'retry' : state;
    const { status, error } = result;
    this.#attempts.add([outcome, status === null ? (error ?? '') : `${Math.floor(status / 100)}xx`]);
    this.#delivery_seconds.observe(duration_ms / 1000);
    if (state !== 'delivered') return;
    this.#end_to_end_seconds.observe(Math.max(0, wall_ms - record.created_at_ms) / 1000);
  }

  /** The metrics of delivery, for the registry. */
  metrics(): Metric[] {
    return [
      {
        name: 'webhook_enqueued_total',
        type: 'counter',
        help: 'Records committed.',
        samples: () => this.enqueued.samples(),
      },
      {
        name: 'webhook_delivery_attempts_total',
        type: 'counter',
        help: 'Attempts ended.',
        samples: () => this.#attempts.samples(),
      },
      distribution('webhook_delivery_duration_seconds', 'Time of an attempt.', this.#delivery_seconds),
      distribution('webhook_end_to_end_seconds', 'From commit to delivery.', this.#end_to_end_seconds),
    ];
  }
}

function distribution(name: string, help: string, histogram: Histogram): Metric {
  return { name, type: 'histogram', help, samples: () => histogram.samples(name) };
}
