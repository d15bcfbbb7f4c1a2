import { Counter, Histogram } from '../base/metrics.ts';
import type { AttemptReport } from '../outbox/attempts.ts';
import type { CommitReport } from '../outbox/sqlite/client.ts';

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const RECORDS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** A figure that is read when somebody asks. */
export interface Gauge {
  name: string;
  help: string;
  samples: { labels?: Record<string, string>; value: number }[];
}

interface Sample {
  metricName?: string;
  labels?: Record<string, string | number>;
  value: number;
}

/**
 * The figures of `/metrics`: counted as things happen, never found by scanning. The library that spells them out is
 * only loaded when somebody asks.
 */
export class Metrics {
  readonly #enqueued = new Counter(['event_type']);
  readonly #attempts = new Counter(['outcome', 'class']);
  readonly #lost = new Counter([]);
  readonly #forged = new Counter([]);
  readonly #commit_seconds = new Histogram(SECONDS);
  readonly #batch_size = new Histogram(RECORDS);
  readonly #delivery_seconds = new Histogram(SECONDS);
  readonly #end_to_end_seconds = new Histogram(SECONDS);

  constructor() {
    this.lost(0);
    this.forged(0);
  }

  lost(records: number): void {
    this.#lost.add([], records);
  }

  /** Records that were found in the outbox and were not made by this daemon. */
  forged(records: number): void {
    this.#forged.add([], records);
  }

  committed({ commit_ms, enqueued, batch_size, trouble }: CommitReport): void {
    if (trouble !== null) return;
    this.#commit_seconds.observe(commit_ms / 1000);
    if (batch_size > 0) this.#batch_size.observe(batch_size);
    for (const event_type of enqueued) this.#enqueued.add([event_type]);
  }

  attempted({ record, result, state, duration_ms }: AttemptReport, wall_ms: number): void {
    const outcome = state === 'pending' ? 'retry' : state;
    const status_class =
      result.status === null ? (result.error ?? '') : `${Math.floor(result.status / 100)}xx`;
    this.#attempts.add([outcome, status_class]);
    this.#delivery_seconds.observe(duration_ms / 1000);
    if (state === 'delivered') {
      this.#end_to_end_seconds.observe(Math.max(0, wall_ms - record.created_at_ms) / 1000);
    }
  }

  /** Prometheus' text format. `gauges` are read by whoever knows them. */
  async text(gauges: Gauge[]): Promise<string> {
    const { Registry } = await import('prom-client');
    const registry = new Registry();
    const register = (name: string, type: string, help: string, values: Sample[]) => {
      registry.registerMetric({ name, type, help, get: async () => ({ name, type, help, values }) } as never);
    };
    const distribution = (name: string, help: string, figures: Histogram) =>
      register(name, 'histogram', help, figures.samples(name));
    for (const { name, help, samples } of gauges) register(name, 'gauge', help, samples);
    register('webhook_enqueued_total', 'counter', 'Records committed.', this.#enqueued.samples());
    register('webhook_delivery_attempts_total', 'counter', 'Attempts ended.', this.#attempts.samples());
    register(
      'webhook_records_lost_total',
      'counter',
      'Acknowledged records found missing after damage.',
      this.#lost.samples(),
    );
    register(
      'webhook_records_not_authentic_total',
      'counter',
      "Records found in the outbox that this sandbox's daemon did not make.",
      this.#forged.samples(),
    );
    distribution('webhook_commit_duration_seconds', 'Time of a commit with its sync.', this.#commit_seconds);
    distribution('webhook_commit_batch_size', 'Appends that shared a commit.', this.#batch_size);
    distribution('webhook_delivery_duration_seconds', 'Time of an attempt.', this.#delivery_seconds);
    distribution('webhook_end_to_end_seconds', 'From commit to delivery.', this.#end_to_end_seconds);
    return registry.metrics();
  }
}
