import { Counter, Histogram, type Metric } from '../../base/metrics.ts';

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** Counts transitions, cleanups and records set aside. Source: contract section 8. */
export class SandboxMetrics {
  /** By verb and outcome. */
  readonly transitions = new Counter('sandbox_transitions_total', 'Completed transitions of sandboxes.', [
    'verb',
    'outcome',
  ]);
  /** Seconds from the commit of a deletion to the end of its cleanup. */
  readonly cleanup_seconds = new Histogram(
    'sandbox_cleanup_duration_seconds',
    'Time from the commit of a deletion to the end of its cleanup.',
    SECONDS,
  );
  /** Records of deleted sandboxes that their daemons did not make. */
  readonly records_set_aside = new Counter(
    'sandbox_records_set_aside_total',
    'Records in outboxes of deleted sandboxes that their daemons did not make. They are not sent.',
  );

  /** The metrics for the registry. */
  metrics(): Metric[] {
    return [this.transitions, this.cleanup_seconds, this.records_set_aside];
  }
}
