import { describe, expect, it } from 'vitest';
import { deliver } from '../support/outbox/delivery.ts';
import type { Answer } from '../support/scripted-transport.ts';

describe('the endpoint', () => {
  it.each<[string, Answer]>([
    ['connect', 'connect'],
    ['429', 429],
    ['503', 503],
  ])('backs off at the third failed attempt in a row (%s)', async (_, answer) => {
    const { transport, publish, dispatcher } = await deliver(() => answer, { concurrency: 1 });
    await publish(2);
    expect(dispatcher.endpointHealth()).toEqual({ healthy: true, next_probe_at: null });
    await publish(10);
    expect(dispatcher.endpointHealth().healthy).toBe(false);
    expect(transport.sent).toHaveLength(3);
  });

  it.each([408, 425, 400, 301])('is not said to be down by %i, and neither up', async (status) => {
    const { transport, publish, dispatcher } = await deliver(
      ({ sequence }) => (sequence <= 10 || sequence === 12 ? status : 503),
      { concurrency: 1 },
    );
    await publish(10);
    expect(dispatcher.endpointHealth().healthy).toBe(true);
    await publish(3);
    expect(dispatcher.endpointHealth().healthy).toBe(true);
    await publish(1);
    expect(dispatcher.endpointHealth().healthy).toBe(false);
    expect(transport.sent).toHaveLength(14);
  });

  it('starts to count anew after a success in between', async () => {
    const { publish, dispatcher } = await deliver(({ sequence }) => (sequence % 3 === 0 ? 200 : 503), {
      concurrency: 1,
    });
    await publish(60);
    expect(dispatcher.endpointHealth().healthy).toBe(true);
  });

  it('counts attempts in the order in which they end', async () => {
    const { clock, publish, dispatcher } = await deliver(
      ({ sequence }) => ({
        status: sequence === 1 ? 200 : 503,
        after_ms: sequence === 1 ? 15 : sequence * 5,
      }),
      { concurrency: 4 },
    );
    await publish(4);
    // They end 10 ms: 2, 15 ms: 1 (a success), 15 ms: 3, 20 ms: 4.
    await clock.advance(30);
    expect(dispatcher.endpointHealth().healthy).toBe(true);
  });

  it('is not backed off longer by attempts that were under way when it began', async () => {
    const { clock, transport, publish } = await deliver(
      ({ sequence }) => (sequence <= 3 || sequence > 18 ? 503 : { status: 503, after_ms: sequence * 10 }),
      { concurrency: 16 },
    );
    await publish(40);
    expect(transport.sent).toHaveLength(18);
    await clock.advance(3_600);
    expect(transport.sent.slice(18).map(({ at_ms }) => at_ms)).toEqual([500, 1_500, 3_500]);
  });

  it('ends its backoff with any success, and what waited only for it is sent at once', async () => {
    const { clock, transport, publish, dispatcher, store } = await deliver(
      ({ at_ms }) => (at_ms < 3_000 ? 'connect' : 200),
      { concurrency: 4 },
    );
    await publish(30);
    await clock.advance(3_499);
    const down = transport.sent.length;
    expect(dispatcher.endpointHealth().healthy).toBe(false);
    await clock.advance(5);
    expect(dispatcher.endpointHealth()).toEqual({ healthy: true, next_probe_at: null });
    expect(transport.sent.length).toBeGreaterThan(down + 20);
    await clock.advance(10_000);
    expect(store.rows.counts()).toMatchObject({ pending: 0, delivered: 30 });
  });

  it('ends its backoff with the success of an attempt that was under way when it began', async () => {
    const { clock, publish, dispatcher } = await deliver(
      ({ sequence }) => (sequence === 4 ? { status: 200, after_ms: 100 } : 503),
      { concurrency: 4 },
    );
    await publish(4);
    expect(dispatcher.endpointHealth().healthy).toBe(false);
    await clock.advance(101);
    expect(dispatcher.endpointHealth().healthy).toBe(true);
  });

  it('leaves a record its own backoff when the endpoint is up again', async () => {
    const { clock, transport, publish } = await deliver(
      ({ sequence, attempt }) => {
        if (sequence === 1) return attempt === 1 ? { status: 503, retry_after: '60' } : 200;
        return attempt === 1 && sequence <= 3 ? 503 : 200;
      },
      { concurrency: 1 },
    );
    await publish(10);
    await clock.advance(120_000);
    expect(transport.timesOf(1)).toEqual([0, 60_000]);
  });

  it('tells when its next probe is', async () => {
    const { clock, publish, dispatcher } = await deliver(() => 503, { concurrency: 1 });
    await publish(20);
    expect(dispatcher.endpointHealth().next_probe_at).toBe('2026-01-01T00:00:00.500Z');
    await clock.advance(500);
    expect(dispatcher.endpointHealth().next_probe_at).toBe('2026-01-01T00:00:01.500Z');
  });
});
