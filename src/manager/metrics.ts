import { Distribution, Tally } from '../base/tally.ts';

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

interface Sample {
  metricName?: string;
  labels?: Record<string, string | number>;
  value: number;
}

/** One figure of `/metrics`, read when somebody asks. */
export interface Figure {
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  help: string;
  samples(): Sample[] | Promise<Sample[]>;
}

/** The figures of `/metrics`; the parts of the manager add theirs. */
export class ManagerMetrics {
  /** By verb and outcome. */
  readonly transitions = new Tally(['verb', 'outcome']);
  readonly cleanup_seconds = new Distribution(SECONDS);
  readonly records_set_aside = new Tally([]);
  readonly #figures: Figure[] = [];

  constructor() {
    this.add({
      name: 'sandbox_transitions_total',
      type: 'counter',
      help: 'Transitions of sandboxes that ended.',
      samples: () => this.transitions.samples(),
    });
    this.add({
      name: 'sandbox_cleanup_duration_seconds',
      type: 'histogram',
      help: 'From the commit of a deletion to the end of its cleanup.',
      samples: () => this.cleanup_seconds.samples('sandbox_cleanup_duration_seconds'),
    });
    this.add({
      name: 'sandbox_records_set_aside_total',
      type: 'counter',
      help: 'Records in outboxes of deleted sandboxes that their daemons have not made: they are not sent.',
      samples: () => this.records_set_aside.samples(),
    });
  }

  add(figure: Figure): void {
    this.#figures.push(figure);
  }

  /** Prometheus' text format; a figure that cannot be read at present is left out. */
  async text(): Promise<string> {
    const { Registry } = await import('prom-client');
    const registry = new Registry();
    for (const { name, type, help, samples } of this.#figures) {
      const values = await Promise.resolve(samples()).catch(() => null);
      if (values === null) continue;
      registry.registerMetric({ name, type, help, get: async () => ({ name, type, help, values }) } as never);
    }
    return registry.metrics();
  }
}
