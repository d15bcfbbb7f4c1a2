import { describe, expect, it } from 'vitest';
import { deliver, range } from '../support/outbox/delivery.ts';

const HOUR_MS = 60 * 60 * 1000;

describe('the endpoint', () => {
  it('gets one probe a step, each with a record never tried, of a growing step up to 30 s', async () => {
    const { clock, transport, publish } = await deliver(() => 'connect', { concurrency: 1 });
    await publish(200);
    await clock.advance(4 * 60_000);
    expect(transport.sequences.slice(0, 12)).toEqual(range(1, 12));
    const times = transport.sent.slice(2, 13).map(({ at_ms }) => at_ms);
    const steps = times.slice(1).map((at_ms, i) => at_ms - (times[i] as number));
    expect(steps).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000, 30_000]);
  });

  it('is probed at its own step whatever Retry-After asked', async () => {
    const { clock, transport, publish } = await deliver(() => ({ status: 503, retry_after: '3000' }), {
      concurrency: 1,
    });
    await publish(10);
    await clock.advance(3_600);
    expect(transport.sequences).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('is probed with the record due first where none is left that was never tried', async () => {
    const { clock, transport, publish } = await deliver(
      ({ sequence, attempt }) => (sequence === 2 && attempt === 1 ? { status: 503, retry_after: '3' } : 503),
      { concurrency: 1 },
    );
    await publish(3);
    await clock.advance(700);
    expect(transport.sent.slice(3)).toMatchObject([{ sequence: 1, attempt: 2, at_ms: 500 }]);
    await clock.advance(1_000);
    // The next step is at 1 500 ms; the third record's own backoff was over at 500 ms, the second's asks for 3 s.
    expect(transport.sent.slice(4)).toMatchObject([{ sequence: 3, attempt: 2, at_ms: 1_500 }]);
  });

  it("counts a record's own backoff as at most 30 s for the probe, and Retry-After in full", async () => {
    const { clock, transport, publish, dispatcher } = await deliver(
      ({ attempt }) => (attempt === 12 ? { status: 503, retry_after: '600' } : 'connect'),
      { concurrency: 1 },
    );
    await publish(1);
    await clock.advance(HOUR_MS);
    expect(dispatcher.endpointHealth().health).toBe('backing_off');
    const times = transport.timesOf(1);
    const gap = (n: number) => (times[n] as number) - (times[n - 1] as number);
    expect([gap(8), gap(9), gap(10), gap(11)]).toEqual([30_000, 30_000, 30_000, 30_000]);
    expect(gap(12)).toBe(600_000);
  });

  it('is probed at once with what is published after a probe found nothing to send', async () => {
    const { clock, transport, publish, dispatcher } = await deliver(
      ({ sequence }) => (sequence <= 3 ? 503 : 200),
      { concurrency: 3, window_ms: 2_000 },
    );
    await publish(3);
    await clock.advance(60_000);
    expect(dispatcher.endpointHealth().health).toBe('backing_off');
    const at_ms = clock.monotonicMs();
    await publish(1);
    expect(transport.timesOf(4)).toEqual([at_ms]);
    expect(dispatcher.endpointHealth().health).toBe('ok');
  });

  it('is probed at once with what is replayed after a probe found nothing to send', async () => {
    const { clock, transport, publish, dispatcher, store } = await deliver(
      ({ attempt }) => (attempt <= 10 ? 503 : 200),
      { concurrency: 3, window_ms: 2_000 },
    );
    const event_ids = await publish(3);
    await clock.advance(60_000);
    expect(dispatcher.endpointHealth().health).toBe('backing_off');
    const before = transport.sent.length;
    store.replay(...event_ids);
    dispatcher.refresh();
    await clock.advance(0);
    expect(transport.sent.length).toBe(before + 1);
  });

  it('gets no probe beside as many attempts as are allowed at once', async () => {
    const { clock, transport, publish } = await deliver(
      ({ at_ms, sequence }) => (at_ms < 5_000 && sequence <= 6 ? 503 : 'hang'),
      { concurrency: 2, window_ms: 10_000, attempt_timeout_ms: 60_000 },
    );
    await publish(6);
    await clock.advance(2_000);
    await publish(10);
    await clock.advance(120_000);
    expect(transport.most_under_way).toBe(2);
  });
});

describe('a paused dispatcher', () => {
  it('sends no probe when the pause comes while the store looks for one', async () => {
    const { clock, store, transport, publish, dispatcher } = await deliver(() => 503, { concurrency: 1 });
    await publish(3);
    const answer = Promise.withResolvers<void>();
    store.answers_after.probeCandidate = answer.promise;
    await clock.advance(600);
    expect(store.reads.probeCandidate).toBe(1);
    dispatcher.pause();
    answer.resolve();
    await clock.advance(60_000);
    expect(transport.sent).toHaveLength(3);
  });
});
