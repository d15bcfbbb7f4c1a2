import { describe, expect, it } from 'vitest';
import { gauge } from '../../src/base/metrics.ts';
import { Metrics } from '../../src/daemon/metrics.ts';

/** The samples of a scrape whose line contains `word`. */
async function samples(metrics: Metrics, word: string): Promise<string[]> {
  const text = await metrics.text([]);
  return text.split('\n').filter((line) => !line.startsWith('#') && line.includes(word));
}

describe('the metrics of the daemon', () => {
  it('show losses as 0 from the start, so that an alert can see the first one', async () => {
    const metrics = new Metrics();
    expect(await samples(metrics, 'records_')).toEqual([
      'sandboxd_records_lost_total 0',
      'sandboxd_records_not_authentic_total 0',
      'sandboxd_records_dropped_total 0',
    ]);
    metrics.countLost(2);
    metrics.countForged(3);
    expect(await samples(metrics, 'records_')).toEqual([
      'sandboxd_records_lost_total 2',
      'sandboxd_records_not_authentic_total 3',
      'sandboxd_records_dropped_total 0',
    ]);
  });

  it('count what each commit has enqueued, and how long it took', async () => {
    const metrics = new Metrics();
    const enqueued = ['agent.event', 'agent.event', 'sandbox.ready'];
    metrics.observeCommit({ commit_ms: 4, batch_size: 3, enqueued, dropped: 2, trouble: null });
    metrics.observeCommit({ commit_ms: 6, batch_size: 0, enqueued: [], dropped: 0, trouble: null });
    expect(await samples(metrics, 'sandboxd_enqueued_total')).toEqual([
      'sandboxd_enqueued_total{event_type="agent.event"} 2',
      'sandboxd_enqueued_total{event_type="sandbox.ready"} 1',
    ]);
    expect(await samples(metrics, 'commit_duration_seconds_')).toEqual(
      expect.arrayContaining([
        'sandboxd_commit_duration_seconds_bucket{le="0.005"} 1',
        'sandboxd_commit_duration_seconds_bucket{le="0.01"} 2',
        'sandboxd_commit_duration_seconds_sum 0.01',
        'sandboxd_commit_duration_seconds_count 2',
      ]),
    );
    expect(await samples(metrics, 'records_dropped')).toEqual(['sandboxd_records_dropped_total 2']);
    expect(await samples(metrics, 'batch_size_count')).toEqual(['sandboxd_commit_batch_size_count 1']);
  });

  it('do not count a commit that failed', async () => {
    const metrics = new Metrics();
    metrics.observeCommit({
      commit_ms: 4,
      batch_size: 1,
      enqueued: ['agent.event'],
      dropped: 2,
      trouble: 'no space left',
    });
    expect(await samples(metrics, 'sandboxd_enqueued_total')).toEqual([]);
    expect(await samples(metrics, 'commit_duration_seconds_count')).toEqual([
      'sandboxd_commit_duration_seconds_count 0',
    ]);
  });

  it('are given together with the gauges of the scrape', async () => {
    expect(await new Metrics().text([gauge('answer', 'Of everything.', () => 42)])).toContain(
      '# HELP sandboxd_answer Of everything.\n# TYPE sandboxd_answer gauge\nsandboxd_answer 42\n',
    );
  });
});
