import { describe, expect, it } from 'vitest';
import { ENDPOINT_FAILURES } from '../../src/contract/defaults.ts';
import { Endpoint } from '../../src/outbox/endpoint.ts';
import { endpointBackoffMs, type Verdict } from '../../src/webhook/retry.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { deliver } from '../support/outbox/delivery.ts';
import type { Answer } from '../support/scripted-transport.ts';

const RANDOM = 0.5;
const EVENT = { event_id: 'evt_1' };
const stepMs = (failed_probes: number) => endpointBackoffMs(failed_probes, RANDOM);

/** An endpoint whose probes end, one after the other, as `ends` says; the next one does not end. */
function endpointWith(ends: (Verdict | Error)[] = []) {
  const clock = new ManualClock();
  const probed_ms: number[] = [];
  const left = [...ends];
  let recoveries = 0;
  const probe = async (): Promise<Verdict> => {
    probed_ms.push(clock.monotonicMs());
    const end = left.shift();
    if (end === undefined) return new Promise(() => {});
    if (end instanceof Error) throw end;
    endpoint.observe(end, EVENT, null);
    return end;
  };
  const onHealthy = () => {
    recoveries += 1;
  };
  const endpoint = new Endpoint(clock, () => RANDOM, probe, onHealthy);
  return {
    endpoint,
    clock,
    probed_ms,
    recoveries: () => recoveries,
    backOff() {
      for (let n = 0; n < ENDPOINT_FAILURES; n++) endpoint.observe('down', EVENT, null);
    },
    pass: (by_ms: number) => clock.advance(by_ms),
  };
}

describe('the endpoint', () => {
  it.each<[string, Answer]>([
    ['connect', 'connect'],
    ['429', 429],
    ['503', 503],
  ])('backs off at the third failed attempt in a row (%s)', async (_, answer) => {
    const { transport, publish, dispatcher } = await deliver(() => answer, { concurrency: 1 });
    await publish(2);
    expect(dispatcher.endpointHealth()).toEqual({ health: 'ok', next_probe_at: null, refusals: null });
    await publish(10);
    expect(dispatcher.endpointHealth().health).toBe('backing_off');
    expect(transport.sent).toHaveLength(3);
  });

  it.each([408, 425, 400, 301])('is not down by %i, and not up either', async (status) => {
    const { transport, publish, dispatcher } = await deliver(
      ({ sequence }) => (sequence <= 10 || sequence === 12 ? status : 503),
      { concurrency: 1 },
    );
    await publish(10);
    expect(dispatcher.endpointHealth().health).not.toBe('backing_off');
    await publish(3);
    expect(dispatcher.endpointHealth().health).not.toBe('backing_off');
    await publish(1);
    expect(dispatcher.endpointHealth().health).toBe('backing_off');
    expect(transport.sent).toHaveLength(14);
  });

  it('starts to count anew after a success in between', async () => {
    const { publish, dispatcher } = await deliver(({ sequence }) => (sequence % 3 === 0 ? 200 : 503), {
      concurrency: 1,
    });
    await publish(60);
    expect(dispatcher.endpointHealth().health).toBe('ok');
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
    expect(dispatcher.endpointHealth().health).toBe('ok');
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
    expect(dispatcher.endpointHealth().health).toBe('backing_off');
    await clock.advance(5);
    expect(dispatcher.endpointHealth()).toEqual({ health: 'ok', next_probe_at: null, refusals: null });
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
    expect(dispatcher.endpointHealth().health).toBe('backing_off');
    await clock.advance(101);
    expect(dispatcher.endpointHealth().health).toBe('ok');
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

describe('an endpoint that refuses', () => {
  it.each([401, 410, 301, 600])(
    'is rejecting after five attempts with %i, and sent on at full speed',
    async (status) => {
      const { transport, publish, dispatcher, clock } = await deliver(
        ({ sequence }) => (sequence <= 40 ? { status, after_ms: 100 } : 200),
        { concurrency: 4 },
      );
      await publish(40);
      await clock.advance(199);
      expect(dispatcher.endpointHealth().health).toBe('ok');
      await clock.advance(801);
      expect(transport.sent).toHaveLength(40);
      const refusals = { status, count: 40 };
      expect(dispatcher.endpointHealth()).toEqual({ health: 'rejecting', next_probe_at: null, refusals });
      await publish(1);
      expect(dispatcher.endpointHealth()).toEqual({ health: 'ok', next_probe_at: null, refusals: null });
    },
  );

  it.each<[string, Answer]>([
    ['a success', 200],
    ['503', 503],
    ['408', 408],
    ['no answer', 'connect'],
  ])('is not rejecting with %s among the last five attempts', async (_, answer) => {
    const { publish, dispatcher } = await deliver(({ sequence }) => (sequence % 5 === 0 ? answer : 401), {
      concurrency: 1,
    });
    for (let published = 0; published < 40; published++) {
      await publish(1);
      expect(dispatcher.endpointHealth().health).not.toBe('rejecting');
    }
  });

  it('is not rejecting for what it says of one event, and stays it once it was said of several', () => {
    const { endpoint } = endpointWith();
    const refuse = (event_id: string) => endpoint.observe('refused', { event_id }, 401);
    for (let n = 0; n < 20; n++) refuse('evt_1');
    expect(endpoint.view().health).toBe('ok');
    refuse('evt_2');
    expect(endpoint.view()).toMatchObject({ health: 'rejecting', refusals: { status: 401, count: 21 } });
    for (let n = 0; n < 20; n++) refuse('evt_2');
    expect(endpoint.view().health).toBe('rejecting');
    endpoint.observe('down', EVENT, null);
    expect(endpoint.view()).toEqual({ health: 'ok', next_probe_at: null, refusals: null });
  });

  it('leaves its backoff when it is rejecting', async () => {
    const { clock, transport, publish, dispatcher } = await deliver(
      ({ at_ms }) => (at_ms === 0 ? 503 : 403),
      { concurrency: 1 },
    );
    await publish(40);
    await clock.advance(2_499);
    expect(dispatcher.endpointHealth().health).toBe('backing_off');
    expect(transport.sent).toHaveLength(3 + 4);
    await clock.advance(1);
    expect(dispatcher.endpointHealth().health).toBe('rejecting');
    expect(transport.sent).toHaveLength(3 + 40);
  });
});

describe('an endpoint by itself', () => {
  it('is backed off after three consecutive failures, not before', () => {
    const { endpoint } = endpointWith();
    for (const verdict of ['down', 'down', 'up', 'down', 'nothing', 'down'] as const)
      endpoint.observe(verdict, EVENT, null);
    expect([endpoint.is_healthy, endpoint.view().next_probe_at, endpoint.next_probe_ms]).toEqual([
      true,
      null,
      0,
    ]);
    endpoint.observe('down', EVENT, null);
    expect(endpoint.is_healthy).toBe(false);
    endpoint.stop();
  });

  it('says when the next probe starts, and nothing while it is under way', async () => {
    const { endpoint, clock, backOff, pass } = endpointWith();
    backOff();
    expect(endpoint.next_probe_ms).toBe(clock.monotonicMs() + stepMs(0));
    expect(endpoint.view().next_probe_at).toBe(new Date(clock.wallMs() + stepMs(0)).toISOString());
    await pass(stepMs(0));
    expect([endpoint.view().next_probe_at, endpoint.next_probe_ms]).toEqual([null, 0]);
    endpoint.stop();
  });

  it('is probed once per step, and each failure makes the next step longer, up to a limit', async () => {
    const failures = 12;
    const { endpoint, probed_ms, backOff, pass } = endpointWith(Array(failures).fill('down'));
    backOff();
    let at_ms = 0;
    for (let n = 0; n < failures; n++) {
      await pass(stepMs(n) - 1);
      expect(probed_ms).toHaveLength(n);
      await pass(1);
      at_ms += stepMs(n);
      expect(probed_ms).toHaveLength(n + 1);
      expect(probed_ms.at(-1)).toBe(at_ms);
    }
    expect(stepMs(1)).toBeGreaterThan(stepMs(0));
    expect(stepMs(failures)).toBe(stepMs(failures + 1));
    endpoint.stop();
  });

  it.each<[string, Verdict | Error]>([
    ['says nothing about it', 'nothing'],
    ['fails by itself', new Error('the store cannot be read')],
  ])('is probed again after the same step where a probe %s', async (_, end) => {
    const { endpoint, probed_ms, backOff, pass } = endpointWith(['down', end, 'down']);
    backOff();
    for (const failed_probes of [0, 1, 1, 2]) await pass(stepMs(failed_probes));
    const starts_ms = [0, 1, 1, 2]
      .map(stepMs)
      .map((_step, n, steps) => steps.slice(0, n + 1).reduce((a, b) => a + b));
    expect(probed_ms).toEqual(starts_ms);
    endpoint.stop();
  });

  it('is healthy with the first success, of a probe or of an attempt that was still under way', async () => {
    const by_probe = endpointWith(['down', 'up']);
    by_probe.backOff();
    for (const failed_probes of [0, 1]) await by_probe.pass(stepMs(failed_probes));
    expect([by_probe.endpoint.is_healthy, by_probe.recoveries()]).toEqual([true, 1]);
    const by_attempt = endpointWith();
    by_attempt.backOff();
    by_attempt.endpoint.observe('up', EVENT, null);
    expect([by_attempt.endpoint.is_healthy, by_attempt.recoveries()]).toEqual([true, 1]);
    for (const { pass, probed_ms, clock } of [by_probe, by_attempt]) {
      const before = probed_ms.length;
      await pass(stepMs(20) * 3);
      expect([probed_ms.length, clock.timers]).toEqual([before, 0]);
    }
  });

  it('begins with the first step again when it is backed off again', async () => {
    const { endpoint, probed_ms, backOff, pass } = endpointWith(['down', 'down', 'up']);
    backOff();
    for (const failed_probes of [0, 1, 2]) await pass(stepMs(failed_probes));
    backOff();
    await pass(stepMs(0));
    expect(probed_ms).toHaveLength(4);
    endpoint.stop();
  });

  it('is probed no more once it is stopped', async () => {
    const { endpoint, clock, probed_ms, recoveries, backOff, pass } = endpointWith(['down']);
    backOff();
    await pass(stepMs(0));
    expect([endpoint.stop(), endpoint.stop()]).toEqual([true, false]);
    await pass(stepMs(20) * 3);
    expect([probed_ms.length, clock.timers, recoveries()]).toEqual([1, 0, 0]);
  });
});
