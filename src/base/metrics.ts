/** A counter with one value per combination of label values. */
export class Counter {
  readonly #labels: string[];
  readonly #counts = new Map<string, number>();

  constructor(labels: string[]) {
    this.#labels = labels;
  }

  /** Adds to the counter; `values` are in the order of the labels. */
  add(values: string[], by = 1): void {
    const key = values.join('\0');
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + by);
  }

  /** The current values, one sample per combination of labels seen so far. */
  samples(): { labels: Record<string, string>; value: number }[] {
    return [...this.#counts].map(([key, value]) => {
      const values = key.split('\0');
      const labels = Object.fromEntries(this.#labels.map((label, i) => [label, values[i] ?? '']));
      return { labels, value };
    });
  }
}

/** A histogram: observations counted per bucket, with their sum and number. */
export class Histogram {
  readonly #bounds: number[];
  readonly #counts: number[];
  #sum = 0;
  #count = 0;

  /** `bounds` are the upper bounds of the buckets, ascending, without `+Inf`. */
  constructor(bounds: number[]) {
    this.#bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  /** Counts one observation. */
  observe(value: number): void {
    this.#sum += value;
    this.#count += 1;
    const i = this.#bounds.findIndex((bound) => value <= bound);
    if (i >= 0) this.#counts[i] = (this.#counts[i] ?? 0) + 1;
  }

  /** The current buckets, cumulative as in Prometheus' text format, with `_sum` and `_count`. */
  samples(name: string): { metricName: string; labels: Record<string, string | number>; value: number }[] {
    let below = 0;
    const buckets = this.#bounds.map((bound, i) => {
      below += this.#counts[i] ?? 0;
      return { metricName: `${name}_bucket`, labels: { le: bound }, value: below };
    });
    return [
      ...buckets,
      { metricName: `${name}_bucket`, labels: { le: '+Inf' }, value: this.#count },
      { metricName: `${name}_sum`, labels: {}, value: this.#sum },
      { metricName: `${name}_count`, labels: {}, value: this.#count },
    ];
  }
}

interface Sample {
  metricName?: string;
  labels?: Record<string, string | number>;
  value: number;
}

/** One metric of `/metrics`, read on each scrape. */
export interface Metric {
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  help: string;
  samples(): Sample[] | Promise<Sample[]>;
}

/** All metrics of a program; each part adds its own. */
export class MetricsRegistry {
  readonly #metrics: Metric[] = [];

  /** Registers metrics. */
  add(metrics: Metric[]): void {
    this.#metrics.push(...metrics);
  }

  /** Returns the metrics in Prometheus' text format. Leaves out a metric that cannot be read right now. */
  async text(): Promise<string> {
    const { Registry } = await import('prom-client');
    const registry = new Registry();
    for (const { name, type, help, samples } of this.#metrics) {
      const values = await Promise.resolve(samples()).catch(() => null);
      if (values === null) continue;
      registry.registerMetric({ name, type, help, get: async () => ({ name, type, help, values }) } as never);
    }
    return registry.metrics();
  }
}
