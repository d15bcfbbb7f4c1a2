import { RequestMetrics } from '../base/http/request-metrics.ts';
import { Counter, Histogram, type Metric, MetricsRegistry } from '../base/metrics.ts';
import { processMetrics } from '../base/process-metrics.ts';
import type { AttemptReport } from '../outbox/attempts.ts';
import { DeliveryMetrics } from '../outbox/delivery-metrics.ts';
import type { CommitReport } from '../outbox/sqlite/commit-report.ts';

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const RECORDS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** What the daemon counts for `/metrics`: as things happen, never by scanning. Source: contract section 8. */
export class Metrics {
  readonly #delivery = new DeliveryMetrics();
  readonly #lost = new Counter('records_lost_total', 'Acknowledged records found missing after damage.');
  readonly #forged = new Counter(
    'records_not_authentic_total',
    "Records found in the outbox that this sandbox's daemon did not write.",
  );
  readonly #dropped = new Counter(
    'records_dropped_total',
    'Failed and expired records removed before their time, to make room in the outbox.',
  );
  readonly #commit_seconds = new Histogram(
    'commit_duration_seconds',
    'Duration of a commit, its sync included.',
    SECONDS,
  );
  readonly #batch_size = new Histogram('commit_batch_size', 'Appends that shared a commit.', RECORDS);

  /** The requests of the local API. */
  readonly requests = new RequestMetrics();

  constructor() {
    this.countLost(0);
    this.countForged(0);
    this.#dropped.add([], 0);
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
  observeCommit({ commit_ms, enqueued, batch_size, dropped, trouble }: CommitReport): void {
    if (trouble !== null) return;
    this.#commit_seconds.observe(commit_ms / 1000);
    if (batch_size > 0) this.#batch_size.observe(batch_size);
    this.#dropped.add([], dropped);
    this.#delivery.countEnqueued(enqueued);
  }

  /** Counts a delivery attempt; `wall_ms` is when it ended. */
  observeAttempt(report: AttemptReport, wall_ms: number): void {
    this.#delivery.observeAttempt(report, wall_ms);
  }

  /** Returns all metrics, with `gauges`, in Prometheus' text format. */
  text(gauges: Metric[]): Promise<string> {
    const registry = new MetricsRegistry('sandboxd');
    registry.add(gauges);
    registry.add(this.#delivery.metrics());
    registry.add([this.#lost, this.#forged, this.#dropped, this.#commit_seconds, this.#batch_size]);
    registry.add([...this.requests.metrics(), ...processMetrics()]);
    return registry.text();
  }
}
