import { Counter, Histogram, type Metric } from '../../base/metrics.ts';

const SECONDS = [0.000_01, 0.000_05, 0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5];

/** Counts the decisions on quotas and measures the draws. */
export class QuotaMetrics {
  /** Decisions by dimension (`node` for the node's budget) and outcome: `admitted`, `refused`, `unreachable`, `failed_open`. */
  readonly decisions = new Counter(['dimension', 'outcome']);
  /** Duration of draws, in seconds. */
  readonly draw_seconds = new Histogram(SECONDS);

  /** The metrics of quotas, for the registry. */
  metrics(isReachable: () => boolean): Metric[] {
    return [
      {
        name: 'quota_decisions_total',
        type: 'counter',
        help: 'Decisions on quotas and on the capacity of the node.',
        samples: () => this.decisions.samples(),
      },
      {
        name: 'quota_draw_duration_seconds',
        type: 'histogram',
        help: 'Time of a decision of the rate authority.',
        samples: () => this.draw_seconds.samples('quota_draw_duration_seconds'),
      },
      {
        name: 'quota_rate_authority_up',
        type: 'gauge',
        help: 'Whether the rate authority answers.',
        samples: () => [{ value: isReachable() ? 1 : 0 }],
      },
    ];
  }
}
