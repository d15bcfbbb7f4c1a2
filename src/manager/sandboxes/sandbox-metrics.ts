import { Counter, Histogram, type Metric } from '../../base/metrics.ts';

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** Counts claims, transitions, cleanups and records set aside. Source: contract section 8. */
export class SandboxMetrics {
  /** By result: `claimed`, or the error's code. */
  readonly claims = new Counter('claims_total', 'Claims that reached the API.', ['result']);
  /** By verb and outcome. */
  readonly transitions = new Counter('transitions_total', 'Completed sandbox transitions.', [
    'verb',
    'outcome',
  ]);
  /** Seconds from the commit of a deletion to the end of its cleanup. */
  readonly cleanup_seconds = new Histogram(
    'cleanup_duration_seconds',
    'Time from the commit of a deletion until its cleanup has ended.',
    SECONDS,
  );
  /** Records of deleted sandboxes that their daemons did not make. */
  readonly records_set_aside = new Counter(
    'records_set_aside_total',
    "Records found in deleted sandboxes' outboxes that their daemons did not write. They are not sent.",
  );

  /** The metrics for the registry. */
  metrics(): Metric[] {
    return [this.claims, this.transitions, this.cleanup_seconds, this.records_set_aside];
  }
}
