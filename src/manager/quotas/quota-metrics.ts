import { Counter, gauge, Histogram, type Metric } from '../../base/metrics.ts';

const SECONDS = [0.000_01, 0.000_05, 0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5];

/** Counts the decisions on quotas and measures the draws. */
export class QuotaMetrics {
  /** Decisions by dimension (`node` for the node's budget) and outcome: `admitted`, `refused`, `unreachable`, `failed_open`. */
  readonly decisions = new Counter('quota_decisions_total', 'Quota and node capacity decisions.', [
    'dimension',
    'outcome',
  ]);
  /** Duration of draws, in seconds. */
  readonly draw_seconds = new Histogram(
    'quota_draw_duration_seconds',
    'Time that the rate authority took to decide.',
    SECONDS,
  );

  /** The metrics of quotas, for the registry. */
  metrics(isReachable: () => boolean): Metric[] {
    const is_up = () => (isReachable() ? 1 : 0);
    return [
      this.decisions,
      this.draw_seconds,
      gauge('quota_rate_authority_up', '1 if the rate authority answers.', is_up),
    ];
  }
}
