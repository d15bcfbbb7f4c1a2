import { Counter, Histogram } from '../base/metrics.ts';
import type { AttemptReport } from '../outbox/attempts.ts';
import type { CommitReport } from '../outbox/sqlite/client.ts';

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const RECORDS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** A metric that is read on each scrape. */
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
 * The metrics of `/metrics`. They are counted as things happen, never computed by scanning. The library that formats
 * them is loaded on the first scrape.
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
    this.countLost(0);
    this.countForged(0);
  }

  /** Counts acknowledged records found missing. */
  countLost(records: number): void {
    this.#lost.add([], records);
  }

  /** Counts records in the outbox that were not written by this sandbox's daemon. */
  countForged(records: number): void {
    this.#forged.add([], records);
  }

  /** Counts what a commit enqueued, and its duration; ignores a failed one. */
  observeCommit({ commit_ms, enqueued, batch_size, trouble }: CommitReport): void {
    if (trouble !== null) return;
    this.#commit_seconds.observe(commit_ms / 1000);
    if (batch_size > 0) this.#batch_size.observe(batch_size);
    for (const event_type of enqueued) this.#enqueued.add([event_type]);
  }

  /** Counts a delivery attempt; `wall_ms` is when it ended. */
  observeAttempt({ record, result, state, duration_ms }: AttemptReport, wall_ms: number): void {
    const outcome = state === 'pending' ? 'retry' : state;
    const status_class =
      result.status === null ? (result.error ?? '') : `${Math.floor(result.status / 100)}xx`;
    this.#attempts.add([outcome, status_class]);
    this.#delivery_seconds.observe(duration_ms / 1000);
    if (state === 'delivered') {
      this.#end_to_end_seconds.observe(Math.max(0, wall_ms - record.created_at_ms) / 1000);
    }
  }

  /** Returns all metrics, with `gauges`, in Prometheus' text format. */
  async text(gauges: Gauge[]): Promise<string> {
    const { Registry } = await import('prom-client');
    const registry = new Registry();
    const register = (name: string, type: string, help: string, values: Sample[]) => {
      registry.registerMetric({ name, type, help, get: async () => ({ name, type, help, values }) } as never);
    };
    const histogram = (name: string, help: string, metric: Histogram) =>
      register(name, 'histogram', help, metric.samples(name));
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
    histogram('webhook_commit_duration_seconds', 'Time of a commit with its sync.', this.#commit_seconds);
    histogram('webhook_commit_batch_size', 'Appends that shared a commit.', this.#batch_size);
    histogram('webhook_delivery_duration_seconds', 'Time of an attempt.', this.#delivery_seconds);
    histogram('webhook_end_to_end_seconds', 'From commit to delivery.', this.#end_to_end_seconds);
    return registry.metrics();
  }
}
