/** A count by label values, kept as things happen. */
export class Counter {
  readonly #labels: string[];
  readonly #counts = new Map<string, number>();

  constructor(labels: string[]) {
    this.#labels = labels;
  }

  add(values: string[], by = 1): void {
    const key = values.join('\0');
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + by);
  }

  samples(): { labels: Record<string, string>; value: number }[] {
    return [...this.#counts].map(([key, value]) => {
      const values = key.split('\0');
      const labels = Object.fromEntries(this.#labels.map((label, i) => [label, values[i] ?? '']));
      return { labels, value };
    });
  }
}

/** How many observations fell up to each bound, their sum and their number: a histogram's figures. */
export class Histogram {
  readonly #bounds: number[];
  readonly #counts: number[];
  #sum = 0;
  #count = 0;

  constructor(bounds: number[]) {
    this.#bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  observe(value: number): void {
    this.#sum += value;
    this.#count += 1;
    const i = this.#bounds.findIndex((bound) => value <= bound);
    if (i >= 0) this.#counts[i] = (this.#counts[i] ?? 0) + 1;
  }

  /** Cumulative, as Prometheus wants them. */
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

/** One metric of `/metrics`, read when it is asked for. */
export interface Metric {
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  help: string;
  samples(): Sample[] | Promise<Sample[]>;
}

/** The metrics of a program; each of its parts adds its own. */
export class MetricsRegistry {
  readonly #metrics: Metric[] = [];

  add(metrics: Metric[]): void {
    this.#metrics.push(...metrics);
  }

  /** The metrics in Prometheus' text format; one that cannot be read at present is left out. */
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
