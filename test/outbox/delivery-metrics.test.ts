import { expect, it } from 'vitest';
import type { AttemptReport } from '../../src/outbox/attempts.ts';
import { DeliveryMetrics } from '../../src/outbox/delivery-metrics.ts';

const COMMITTED_MS = Date.UTC(2026, 0, 1);

function report(state: AttemptReport['state'], status: number | null, error: 'dns' | null = null) {
  return {
    record: { created_at_ms: COMMITTED_MS },
    result: { status, error },
    state,
    duration_ms: 20,
  } as AttemptReport;
}

async function samplesOf(metrics: DeliveryMetrics, name: string) {
  return (
    (await metrics
      .metrics()
      .find((each) => each.name === name)
      ?.samples()) ?? []
  );
}

it('counts attempts by what became of the record and by the class of the answer', async () => {
  const metrics = new DeliveryMetrics();
  metrics.observeAttempt(report('pending', 503), COMMITTED_MS);
  metrics.observeAttempt(report('pending', null, 'dns'), COMMITTED_MS);
  metrics.observeAttempt(report('failed', 404), COMMITTED_MS);
  metrics.observeAttempt(report('delivered', 204), COMMITTED_MS);
  expect(await samplesOf(metrics, 'delivery_attempts_total')).toEqual([
    { labels: { outcome: 'retry', class: '5xx' }, value: 1 },
    { labels: { outcome: 'retry', class: 'dns' }, value: 1 },
    { labels: { outcome: 'failed', class: '4xx' }, value: 1 },
    { labels: { outcome: 'delivered', class: '2xx' }, value: 1 },
  ]);
  const durations = await samplesOf(metrics, 'delivery_duration_seconds');
  expect(durations.at(-1)).toMatchObject({ value: 4 });
});

it('measures the time from commit to delivery of delivered records alone, never below 0', async () => {
  const metrics = new DeliveryMetrics();
  metrics.observeAttempt(report('expired', 503), COMMITTED_MS + 60_000);
  metrics.observeAttempt(report('delivered', 200), COMMITTED_MS + 1_500);
  // The wall clock was set back between commit and delivery.
  metrics.observeAttempt(report('delivered', 200), COMMITTED_MS - 5_000);
  const samples = await samplesOf(metrics, 'end_to_end_seconds');
  expect(samples.slice(-2).map(({ value }) => value)).toEqual([1.5, 2]);
});

it('counts committed records by event type', async () => {
  const metrics = new DeliveryMetrics();
  metrics.countEnqueued(['agent.event', 'sandbox.ready']);
  metrics.countEnqueued(['agent.event']);
  expect(await samplesOf(metrics, 'enqueued_total')).toEqual([
    { labels: { event_type: 'agent.event' }, value: 2 },
    { labels: { event_type: 'sandbox.ready' }, value: 1 },
  ]);
});
