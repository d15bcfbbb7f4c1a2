import { describe, expect, it } from 'vitest';
import { scriptedParts } from '../../support/manager/scripted-parts.ts';

describe('the metrics of sandboxes', () => {
  it('count claims by result, and transitions by verb and outcome', async () => {
    const { claim, sandboxes, runtime, services } = await scriptedParts();
    const named = await claim();
    await sandboxes.pause(named, null);
    runtime.fail('resume', new Error('on purpose'));
    await expect(sandboxes.resume(named, null)).rejects.toThrow('on purpose');
    runtime.fail('create', new Error('on purpose'));
    await expect(claim()).rejects.toThrow('on purpose');
    expect(services.metrics.claims.samples()).toEqual([
      { labels: { result: 'claimed' }, value: 1 },
      { labels: { result: 'internal_error' }, value: 1 },
    ]);
    expect(services.metrics.transitions.samples()).toEqual([
      { labels: { verb: 'claim', outcome: 'done' }, value: 1 },
      { labels: { verb: 'pause', outcome: 'done' }, value: 1 },
      { labels: { verb: 'resume', outcome: 'failed' }, value: 1 },
      { labels: { verb: 'claim', outcome: 'failed' }, value: 1 },
    ]);
  });

  it('measure a cleanup from the commit of the deletion to its end', async () => {
    const { claim, deletions, runtime, clock, services } = await scriptedParts();
    const { sandbox_id } = await claim();
    const release = runtime.hold('end');
    await deletions.delete(sandbox_id, 'team_1', { reason: 'api', actor: null });
    await clock.advance(7_000);
    release();
    await clock.advance(0);
    const samples = services.metrics.cleanup_seconds.samples();
    const sampleOf = (name: string, le?: number) =>
      samples.find(
        ({ metricName, labels }) => metricName === `cleanup_duration_seconds_${name}` && labels?.le === le,
      )?.value;
    expect([sampleOf('count'), sampleOf('sum')]).toEqual([1, 7]);
    expect([sampleOf('bucket', 5), sampleOf('bucket', 10)]).toEqual([0, 1]);
  });
});
