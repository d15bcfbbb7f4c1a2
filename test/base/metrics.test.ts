import { describe, expect, it } from 'vitest';
import { Counter, gauge, Histogram, labelledGauge, MetricsRegistry } from '../../src/base/metrics.ts';

async function text(...metrics: Parameters<MetricsRegistry['add']>[0]): Promise<string> {
  const registry = new MetricsRegistry();
  registry.add(metrics);
  return registry.text();
}

describe('metrics in the text format of Prometheus', () => {
  it('show a counter with one line for each combination of labels', async () => {
    const counter = new Counter('done_total', 'What was done.', ['verb', 'outcome']);
    counter.add(['claim', 'done']);
    counter.add(['claim', 'done'], 2);
    counter.add(['claim', 'a "b"']);
    expect(await text(counter)).toBe(
      '# HELP done_total What was done.\n# TYPE done_total counter\n' +
        'done_total{verb="claim",outcome="done"} 3\ndone_total{verb="claim",outcome="a \\"b\\""} 1\n',
    );
  });

  it('show a histogram with cumulative buckets, sum and count', async () => {
    const histogram = new Histogram('wait_seconds', 'How long.', [0.5, 1]);
    for (const seconds of [0.5, 0.75, 1, 3]) histogram.observe(seconds);
    expect((await text(histogram)).split('\n').slice(1)).toEqual([
      '# TYPE wait_seconds histogram',
      'wait_seconds_bucket{le="0.5"} 1',
      'wait_seconds_bucket{le="1"} 3',
      'wait_seconds_bucket{le="+Inf"} 4',
      'wait_seconds_sum 5.25',
      'wait_seconds_count 4',
      '',
    ]);
  });

  it('carry the prefix of the program, with the parts of a histogram', async () => {
    const registry = new MetricsRegistry('program');
    const histogram = new Histogram('wait_seconds', 'How long.', [1]);
    histogram.observe(0.5);
    registry.add([gauge('open', 'Open now.', () => 1), histogram]);
    const names = (await registry.text()).match(/^[a-z_]+/gm);
    expect(names).toEqual([
      'program_open',
      'program_wait_seconds_bucket',
      'program_wait_seconds_bucket',
      'program_wait_seconds_sum',
      'program_wait_seconds_count',
    ]);
  });

  it('read a gauge on each scrape', async () => {
    let value = 1;
    const registry = new MetricsRegistry();
    registry.add([
      gauge('open', 'Open now.', async () => value),
      labelledGauge('kept', 'Kept now.', 'state', () => ({ pending: value, failed: 0 })),
    ]);
    await registry.text();
    value = 7;
    const lines = (await registry.text()).split('\n').filter((line) => !line.startsWith('#'));
    expect(lines).toEqual(['open 7', '', 'kept{state="pending"} 7', 'kept{state="failed"} 0', '']);
  });

  it('leave out what cannot be read right now, and show the rest', async () => {
    const fails = () => {
      throw new Error('away');
    };
    const shown = await text(
      gauge('a', 'Fails.', fails),
      gauge('b', 'Fails later.', async () => fails()),
      gauge('c', 'Works.', () => 3),
    );
    expect(shown).toBe('# HELP c Works.\n# TYPE c gauge\nc 3\n');
  });
});
