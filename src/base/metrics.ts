/** One value of a metric, with its labels. */
export interface Sample {
  /** Where it is not the metric's own: of a bucket, the sum or the number of a histogram. */
  metricName?: string;
  labels?: Record<string, string | number>;
  value: number;
}

/** One metric of `/metrics`, read on each scrape. */
export interface Metric {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  /** The current values. One that throws or rejects leaves the metric out of that scrape. */
  samples(): Sample[] | Promise<Sample[]>;
}

/** A counter with one value per combination of label values. */
export class Counter implements Metric {
  readonly name: string;
  readonly type = 'counter';
  readonly help: string;
  readonly #labels: string[];
  readonly #counts = new Map<string, number>();

  constructor(name: string, help: string, labels: string[] = []) {
    this.name = name;
    this.help = help;
    this.#labels = labels;
  }

  /** Adds to the counter; `values` are in the order of the labels. */
  add(values: string[], by = 1): void {
    const key = values.join('\0');
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + by);
  }

  /** The current values, one sample per combination of labels seen so far. */
  samples(): Sample[] {
    return [...this.#counts].map(([key, value]) => {
      const values = key.split('\0');
      const labels = Object.fromEntries(this.#labels.map((label, i) => [label, values[i] ?? '']));
      return { labels, value };
    });
  }
}

/** A histogram: observations counted per bucket, with their sum and number. */
export class Histogram implements Metric {
  readonly name: string;
  readonly type = 'histogram';
  readonly help: string;
  readonly #bounds: number[];
  readonly #counts: number[];
  #sum = 0;
  #count = 0;

  /** `bounds` are the upper bounds of the buckets, ascending, without `+Inf`. */
  constructor(name: string, help: string, bounds: number[]) {
    this.name = name;
    this.help = help;
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
  samples(): Sample[] {
    const { name } = this;
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

/** A gauge with one value, read on each scrape. */
export function gauge(name: string, help: string, read: () => number | Promise<number>): Metric {
  return { name, type: 'gauge', help, samples: async () => [{ value: await read() }] };
}

/** A gauge with one value per value of a label, read on each scrape. */
export function labelledGauge(
  name: string,
  help: string,
  label: string,
  read: () => Record<string, number> | Promise<Record<string, number>>,
): Metric {
  return { name, type: 'gauge', help, samples: labelledSamples(label, read) };
}

/** A counter kept elsewhere, with one value per value of a label, read on each scrape. */
export function labelledCounter(
  name: string,
  help: string,
  label: string,
  read: () => Record<string, number>,
): Metric {
  return { name, type: 'counter', help, samples: labelledSamples(label, read) };
}

function labelledSamples(
  label: string,
  read: () => Record<string, number> | Promise<Record<string, number>>,
): () => Promise<Sample[]> {
  return async () =>
    Object.entries(await read()).map(([text, value]) => ({ labels: { [label]: text }, value }));
}

/** All metrics of a program; each part adds its own. */
export class MetricsRegistry {
  readonly #prefix: string;
  readonly #metrics: Metric[] = [];

  /** `program`: put before every name, with an underscore; empty: nothing is. */
  constructor(program = '') {
    this.#prefix = program === '' ? '' : `${program}_`;
  }

  /** Registers metrics. */
  add(metrics: Metric[]): void {
    this.#metrics.push(...metrics);
  }

  /**
   * Returns the metrics in Prometheus' text format. Leaves out a metric that cannot be read right now. The library
   * that formats them is loaded with the first call.
   */
  async text(): Promise<string> {
    const { Registry } = await import('prom-client');
    const registry = new Registry();
    for (const metric of this.#metrics) {
      const { type, help } = metric;
      const name = this.#prefix + metric.name;
      const samples = await samplesOf(metric);
      if (samples === null) continue;
      const values = samples.map(({ metricName, ...sample }) =>
        metricName === undefined ? sample : { ...sample, metricName: this.#prefix + metricName },
      );
      registry.registerMetric({ name, type, help, get: async () => ({ name, type, help, values }) } as never);
    }
    return registry.metrics();
  }
}

async function samplesOf(metric: Metric): Promise<Sample[] | null> {
  try {
    return await metric.samples();
  } catch {
    return null;
  }
}
