import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { draft } from '../support/in-process-store.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { deliver } from '../support/outbox/delivery.ts';
import type { Answer, Sent } from '../support/scripted-transport.ts';

// Thousands of commits on a machine that others use, too.
vi.setConfig({ testTimeout: 60_000 });

const HOUR_MS = 60 * 60 * 1000;

/** Answers the n-th attempt at a record with the n-th of these, and all later ones with the last. */
const inTurn =
  (...answers: Answer[]) =>
  ({ attempt }: Sent): Answer =>
    answers[Math.min(attempt, answers.length) - 1] as Answer;

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

describe('order and concurrency', () => {
  it('sends in sequence order, one at a time, with a concurrency of 1', async () => {
    const { clock, transport, publish } = await deliver(() => ({ status: 200, after_ms: 10 }), {
      concurrency: 1,
    });
    await publish(20);
    await clock.advance(1_000);
    expect(transport.sequences).toEqual(range(1, 20));
    expect(transport.most_under_way).toBe(1);
  });

  it('starts attempts in sequence order and never more at once than allowed', async () => {
    const { clock, transport, publish } = await deliver(
      ({ sequence }) => ({ status: 204, after_ms: 1 + ((sequence * 7) % 13) }),
      { concurrency: 5 },
    );
    await publish(40);
    await publish(40);
    await clock.advance(2_000);
    expect(transport.sequences).toEqual(range(1, 80));
    expect(transport.most_under_way).toBe(5);
  });

  it('goes on with the next record while one waits for its retry, with a concurrency of 1', async () => {
    const { clock, transport, publish } = await deliver(
      ({ sequence, attempt }) => (sequence === 1 && attempt < 3 ? 408 : { status: 200, after_ms: 150 }),
      { concurrency: 1 },
    );
    await publish(12);
    await clock.advance(10_000);
    expect(transport.sequences.slice(0, 4)).toEqual([1, 2, 3, 4]);
    // Its time came at 500 ms; it goes before what was committed after it.
    expect(transport.timesOf(1)).toEqual([0, 600, 1_650]);
    expect(transport.sequences.filter((sequence) => sequence !== 1)).toEqual(range(2, 12));
  });

  it('holds up nobody with a record that alone keeps failing', async () => {
    const { clock, transport, publish, dispatcher } = await deliver(
      ({ sequence }) => (sequence === 1 ? 503 : 200),
      { concurrency: 1 },
    );
    await publish(1);
    for (let i = 0; i < 50; i++) {
      await clock.advance(100);
      await publish(1);
    }
    expect(new Set(transport.sequences)).toEqual(new Set(range(1, 51)));
    expect(dispatcher.endpointHealth().healthy).toBe(true);
  });

  it('leaves half of the connections to new records when many retries are due at once', async () => {
    const { clock, transport, publish } = await deliver(
      ({ attempt }) => (attempt === 1 ? 425 : { status: 200, after_ms: 1_000 }),
      { concurrency: 4 },
    );
    await publish(40);
    transport.answer = () => ({ status: 200, after_ms: 1_000 });
    await clock.advance(499);
    await publish(20);
    await clock.advance(2_000);
    const from_then = transport.sent.slice(40, 52);
    expect(from_then.filter(({ attempt }) => attempt === 1).length).toBeGreaterThanOrEqual(6);
    expect(from_then.filter(({ attempt }) => attempt === 2).length).toBeGreaterThanOrEqual(4);
  });

  it('keeps at most a window of a long backlog in memory and sends all of it in order', async () => {
    const { clock, store, transport, publish, dispatcher } = await deliver(
      () => ({ status: 200, after_ms: 5 }),
      { concurrency: 8 },
    );
    dispatcher.pause();
    const asked: number[] = [];
    const read = store.rows.backlog.untried.bind(store.rows.backlog);
    store.rows.backlog.untried = (after_id, limit) => {
      asked.push(limit);
      return read(after_id, limit);
    };
    for (let i = 0; i < 50; i++) await publish(100);
    await dispatcher.start();
    await clock.advance(10_000);
    expect(transport.sequences).toEqual(range(1, 5_000));
    expect(Math.max(...asked)).toBeLessThanOrEqual(512);
    expect(asked.length).toBeGreaterThan(10);
    expect(store.rows.counts()).toMatchObject({ pending: 0, delivered: 5_000 });
  });

  it('keeps no more than some mebibytes of large records in memory', async () => {
    const { clock, store, transport, dispatcher } = await deliver(() => ({ status: 200, after_ms: 5 }), {
      concurrency: 2,
    });
    dispatcher.pause();
    const payload = JSON.stringify({ text: 'x'.repeat(1_000_000) });
    for (let i = 0; i < 40; i++) store.append(draft(payload));
    await dispatcher.start();
    await clock.advance(0);
    expect(transport.sent).toHaveLength(2);
    // Four mebibytes to look at and as much that was read beyond them.
    expect(store.rows.backlog.untried(0, 512).records.length * store.reads.untried).toBeLessThanOrEqual(15);
    await clock.advance(1_000);
    expect(transport.sequences).toEqual(range(1, 40));
  });

  it('starts nothing while it may not, and goes on when it is woken, without asking the store', async () => {
    let room = 3;
    const { clock, store, transport, publish, dispatcher } = await deliver(
      () => ({ status: 200, after_ms: 10 }),
      {
        mayStart: (under_way) => under_way < room,
      },
    );
    await publish(10);
    expect(transport.sent).toHaveLength(3);
    room = 0;
    await clock.advance(1_000);
    expect(transport.sent).toHaveLength(3);
    room = 16;
    const reads = { ...store.reads };
    dispatcher.wake();
    await clock.advance(1_000);
    expect(transport.sequences).toEqual(range(1, 10));
    expect(store.reads).toEqual(reads);
  });

  it('reads what failed in an outage before it goes on with what was never tried, however long that takes', async () => {
    let is_up = false;
    const { clock, store, transport, publish } = await deliver(() => (is_up ? 200 : 503), { concurrency: 4 });
    await publish(40);
    await clock.advance(1_000);
    const tried = transport.sent.length;
    const answer = Promise.withResolvers<void>();
    store.answers_after.due = answer.promise;
    is_up = true;
    await clock.advance(60_000);
    const probes = transport.sent.length - tried;
    answer.resolve();
    await clock.advance(60_000);
    expect(probes).toBeLessThanOrEqual(5);
    expect(new Set(transport.sequences)).toEqual(new Set(range(1, 40)));
  });

  it('misses nothing that is committed while the backlog is being read', async () => {
    const { clock, store, transport, publish, dispatcher } = await deliver(() => 200, { concurrency: 4 });
    dispatcher.pause();
    await publish(1_100);
    await publish(400);
    const answer = Promise.withResolvers<void>();
    store.answers_after.untried = answer.promise;
    await dispatcher.start();
    await clock.advance(0);
    expect(transport.sent).toHaveLength(1_100);
    await publish(1);
    await publish(1);
    answer.resolve();
    await clock.advance(1_000);
    expect(transport.sequences).toEqual(range(1, 1_502));
  });
});

describe('retries', () => {
  it('come after 0.5, 1, 2, 4 … s from the end of the attempt, at most 5 min', async () => {
    const { clock, transport, publish } = await deliver(() => ({ status: 408, after_ms: 100 }));
    await publish(1);
    await clock.advance(2 * HOUR_MS);
    const times = transport.timesOf(1);
    const gaps = times.slice(1).map((at_ms, i) => at_ms - (times[i] as number) - 100);
    expect(gaps.slice(0, 12)).toEqual([
      500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000, 300_000,
    ]);
  });

  it('are jittered by at most a fifth', async () => {
    const jitter = [0, 0.999_999];
    const { clock, transport, publish } = await deliver(() => 425, {
      random: () => jitter.shift() ?? 0.5,
    });
    await publish(1);
    await clock.advance(5_000);
    expect(transport.timesOf(1).slice(0, 3)).toEqual([0, 400, 1_600]);
  });

  it('carry the number of the attempt, the same headers and the same bytes', async () => {
    const { clock, transport, publish } = await deliver(inTurn(500, 'reset', 200), {
      secret: 'made for this test',
    });
    await publish(1);
    await clock.advance(5_000);
    expect(transport.sent.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    const fixed = transport.sent.map(({ request }) => ({
      ...request,
      headers: { ...request.headers, 'X-Service-Attempt': '' },
    }));
    expect(fixed[1]).toEqual(fixed[0]);
    expect(fixed[2]).toEqual(fixed[0]);
  });

  it('sign each attempt anew for Standard Webhooks where the secret is of that kind', async () => {
    const { clock, transport, publish } = await deliver(inTurn(500, 200), {
      secret: `whsec_${Buffer.from('made for this test').toString('base64')}`,
    });
    await publish(1);
    await clock.advance(5_000);
    const [first, second] = transport.sent.map(({ request }) => request.headers);
    expect(first?.['webhook-id']).toBe(transport.sent[0]?.event_id);
    expect(second?.['webhook-signature']).toMatch(/^v1,/);
    expect(Number(second?.['webhook-timestamp'])).toBeGreaterThanOrEqual(
      Number(first?.['webhook-timestamp']),
    );
    expect(second?.['X-Service-Signature']).toBe(first?.['X-Service-Signature']);
  });

  it.each([
    ['2', 2_000],
    ['0', 500],
    ['soon', 500],
    ['7200', HOUR_MS],
    [new Date(Date.UTC(2026, 0, 1, 0, 0, 3)).toUTCString(), 3_000],
    [new Date(Date.UTC(2025, 0, 1)).toUTCString(), 500],
  ])('come when Retry-After "%s" says, where that is longer', async (retry_after, expected_ms) => {
    const { clock, transport, publish } = await deliver(({ attempt }) =>
      attempt === 1 ? { status: 503, retry_after } : 200,
    );
    await publish(1);
    await clock.advance(2 * HOUR_MS);
    expect(transport.timesOf(1)).toEqual([0, expected_ms]);
  });

  it('do not wait for Retry-After past the end of the window', async () => {
    const { clock, transport, publish, state } = await deliver(() => ({ status: 429, retry_after: '3600' }), {
      window_ms: 10_000,
    });
    const [event_id = ''] = await publish(1);
    await clock.advance(2 * HOUR_MS);
    expect(transport.timesOf(1)).toEqual([0, 10_000]);
    expect(state(event_id)).toBe('expired');
  });

  it.each([301, 304, 400, 401, 404, 410, 422])(
    'are not made after %i: the record has failed',
    async (status) => {
      const { clock, transport, publish, state } = await deliver(() => status);
      const [event_id = ''] = await publish(1);
      await clock.advance(48 * HOUR_MS);
      expect(transport.sent).toHaveLength(1);
      expect(state(event_id)).toBe('failed');
    },
  );

  it('of more records than fit into one look are all made although nothing else happens', async () => {
    // A hanging one keeps connections taken while the others become due.
    const { clock, transport, publish, store } = await deliver(
      ({ sequence, attempt }) => {
        if (sequence > 100) return 'hang';
        return attempt === 1 ? 408 : 200;
      },
      { concurrency: 64, attempt_timeout_ms: 100_000_000 },
    );
    await publish(100);
    await publish(30);
    await clock.advance(60_000);
    expect(store.rows.counts()).toMatchObject({ delivered: 100, pending: 30 });
    expect(transport.sent).toHaveLength(230);
  });

  it('go on after the store was out of order when they were due', async () => {
    const { clock, store, transport, publish } = await deliver(inTurn(408, 200));
    await publish(1);
    store.is_out_of_order = true;
    await clock.advance(5_000);
    expect(transport.sent).toHaveLength(1);
    store.is_out_of_order = false;
    await clock.advance(2_000);
    expect(transport.sent).toHaveLength(2);
  });

  it('of a replayed record go on counting attempts and start its window and backoff anew', async () => {
    const { clock, store, transport, publish, state, dispatcher } = await deliver(
      inTurn(408, 408, 400, 408, 200),
    );
    const [event_id = ''] = await publish(1);
    await clock.advance(10_000);
    expect(state(event_id)).toBe('failed');
    store.replay(event_id);
    dispatcher.refresh();
    await clock.advance(10_000);
    expect(transport.sent.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5]);
    const times = transport.timesOf(1);
    expect((times[4] as number) - (times[3] as number)).toBe(500);
    expect(state(event_id)).toBe('delivered');
  });
});

describe('the window', () => {
  it('ends with one last attempt, and then the record is expired', async () => {
    const { clock, transport, publish, state, logged } = await deliver(() => 408, { window_ms: 100_000 });
    const [event_id = ''] = await publish(1);
    await clock.advance(10 * HOUR_MS);
    const times = transport.timesOf(1);
    expect(times.at(-1)).toBe(100_000);
    expect(times.filter((at_ms) => at_ms >= 100_000)).toHaveLength(1);
    expect(state(event_id)).toBe('expired');
    expect(logged.filter((line) => line.event_id === event_id)).toMatchObject([
      { level: 40, event_type: 'agent.event', status: 408, msg: expect.stringMatching(/expired/) },
    ]);
  });

  it('is not what ends a delivery that is refused for good, which is told in the log, too', async () => {
    const { clock, publish, logged } = await deliver(() => 400);
    const [event_id = ''] = await publish(1);
    await clock.advance(1_000);
    expect(logged).toMatchObject([{ event_id, status: 400, msg: expect.stringMatching(/failed for good/) }]);
  });

  it('has its last attempt also while the endpoint backs off, for records tried and never tried', async () => {
    const { clock, transport, publish, store } = await deliver(() => 'connect', { window_ms: 60_000 });
    await publish(5);
    await clock.advance(1_000);
    await publish(3);
    await clock.advance(HOUR_MS);
    expect(store.rows.counts()).toMatchObject({ pending: 0, expired: 8 });
    for (const sequence of range(1, 8)) {
      const at_end = transport.timesOf(sequence).filter((at_ms) => at_ms >= 60_000);
      expect(at_end, `record ${sequence}`).toEqual([sequence <= 5 ? 60_000 : 61_000]);
    }
  });

  it('has its last attempts for a whole backlog while the endpoint backs off', async () => {
    const { clock, publish, store, transport } = await deliver(() => 'connect', { window_ms: 60_000 });
    await publish(2_000);
    await clock.advance(30_000);
    const before = transport.sent.length;
    await clock.advance(HOUR_MS);
    expect(store.rows.counts()).toMatchObject({ pending: 0, expired: 2_000 });
    expect(transport.sent.length - before).toBeLessThanOrEqual(2_000 + 10);
  });

  it('has its last attempt also when it ended while the daemon was away', async () => {
    const delivery = await deliver(() => 503, { window_ms: 10_000 });
    const [tried = ''] = await delivery.publish(1);
    await delivery.dispatcher.stop();
    const [untried = ''] = await delivery.publish(1);
    await delivery.clock.advance(HOUR_MS);
    const again = await delivery.restart();
    await again.clock.advance(HOUR_MS);
    expect(again.transport.sequences.toSorted()).toEqual([1, 2]);
    expect([delivery.state(tried), delivery.state(untried)]).toEqual(['expired', 'expired']);
  });

  it('counts a success of the last attempt', async () => {
    const { clock, publish, state } = await deliver(({ at_ms }) => (at_ms >= 10_000 ? 200 : 408), {
      window_ms: 10_000,
    });
    const [event_id = ''] = await publish(1);
    await clock.advance(HOUR_MS);
    expect(state(event_id)).toBe('delivered');
  });

  it('does not move with the wall clock', async () => {
    const { clock, transport, publish } = await deliver(() => 408, { window_ms: 100_000 });
    await publish(1);
    clock.step(-48 * HOUR_MS);
    await clock.advance(50_000);
    clock.step(96 * HOUR_MS);
    await clock.advance(HOUR_MS);
    expect(transport.timesOf(1).slice(0, 4)).toEqual([0, 500, 1_500, 3_500]);
    expect(transport.timesOf(1).at(-1)).toBe(100_000);
  });
});

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
    expect(dispatcher.endpointHealth().healthy).toBe(false);
    const times = transport.timesOf(1);
    const gap = (n: number) => (times[n] as number) - (times[n - 1] as number);
    expect([gap(8), gap(9), gap(10), gap(11)]).toEqual([30_000, 30_000, 30_000, 30_000]);
    expect(gap(12)).toBe(600_000);
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

  it('is probed at once with what is published after a probe found nothing to send', async () => {
    const { clock, transport, publish, dispatcher } = await deliver(
      ({ sequence }) => (sequence <= 3 ? 503 : 200),
      { concurrency: 3, window_ms: 2_000 },
    );
    await publish(3);
    await clock.advance(60_000);
    expect(dispatcher.endpointHealth().healthy).toBe(false);
    const at_ms = clock.monotonicMs();
    await publish(1);
    expect(transport.timesOf(4)).toEqual([at_ms]);
    expect(dispatcher.endpointHealth().healthy).toBe(true);
  });

  it('is probed at once with what is replayed after a probe found nothing to send', async () => {
    const { clock, transport, publish, dispatcher, store } = await deliver(
      ({ attempt }) => (attempt <= 10 ? 503 : 200),
      { concurrency: 3, window_ms: 2_000 },
    );
    const event_ids = await publish(3);
    await clock.advance(60_000);
    expect(dispatcher.endpointHealth().healthy).toBe(false);
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

describe('an outcome that the disk does not take', () => {
  it('does not cause its record to be sent again', async () => {
    const { clock, store, transport, publish } = await deliver(inTurn(408, 200));
    store.refuseOutcomes();
    await publish(20);
    await clock.advance(10 * 60_000);
    expect(transport.sent).toHaveLength(20);
    store.takeOutcomes();
    await clock.advance(10 * 60_000);
    expect(transport.sent).toHaveLength(40);
    expect(store.rows.counts()).toMatchObject({ delivered: 20, pending: 0 });
  });

  it('is one of at most a thousand before sending stops', async () => {
    const { clock, store, transport, publish } = await deliver(() => 200, { concurrency: 1 });
    store.refuseOutcomes();
    await publish(3_000);
    await clock.advance(60_000);
    expect(transport.sent).toHaveLength(1_000);
    store.takeOutcomes();
    await clock.advance(60_000);
    expect(transport.sequences).toEqual(range(1, 3_000));
  });
});

describe('pause, flush and stop', () => {
  it('starts no attempt while paused, the probe included, and goes on after', async () => {
    const { clock, transport, publish, dispatcher } = await deliver(() => 503, { concurrency: 2 });
    await publish(20);
    await clock.advance(700);
    dispatcher.pause();
    const before = transport.sent.length;
    await clock.advance(HOUR_MS);
    await publish(5);
    expect(transport.sent).toHaveLength(before);
    transport.answer = () => 200;
    await dispatcher.start();
    await clock.advance(60_000);
    expect(new Set(transport.sequences)).toEqual(new Set(range(1, 25)));
  });

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

  it('lets what is under way end while paused', async () => {
    const { clock, publish, dispatcher, state } = await deliver(() => ({ status: 200, after_ms: 1_000 }));
    const [event_id = ''] = await publish(1);
    dispatcher.pause();
    await clock.advance(2_000);
    expect(state(event_id)).toBe('delivered');
  });

  it('flushes until everything is delivered, and no longer', async () => {
    const { clock, publish, dispatcher, store } = await deliver(() => ({ status: 200, after_ms: 50 }), {
      concurrency: 2,
    });
    await publish(10);
    let flushed_at_ms = -1;
    void dispatcher.flush(10_000).then(() => {
      flushed_at_ms = clock.monotonicMs();
    });
    await clock.advance(10_000);
    expect(flushed_at_ms).toBe(250);
    expect(store.rows.counts().delivered).toBe(10);
  });

  it('flushes a retry that comes within its time', async () => {
    const { clock, publish, dispatcher, store } = await deliver(inTurn(408, 408, 200));
    await publish(1);
    let flushed_at_ms = -1;
    void dispatcher.flush(10_000).then(() => {
      flushed_at_ms = clock.monotonicMs();
    });
    await clock.advance(10_000);
    expect(flushed_at_ms).toBe(1_500);
    expect(store.rows.counts().delivered).toBe(1);
  });

  it('does not wait in a flush for a retry that comes too late', async () => {
    const { clock, publish, dispatcher } = await deliver(() => ({ status: 408, retry_after: '60' }));
    await publish(1);
    let has_ended = false;
    void dispatcher.flush(10_000).then(() => {
      has_ended = true;
    });
    await clock.advance(0);
    expect(has_ended).toBe(true);
  });

  it('ends a flush at its time although an attempt hangs', async () => {
    const { clock, publish, dispatcher } = await deliver(() => 'hang');
    await publish(1);
    let flushed_at_ms = -1;
    void dispatcher.flush(2_000).then(() => {
      flushed_at_ms = clock.monotonicMs();
    });
    await clock.advance(20_000);
    expect(flushed_at_ms).toBe(2_000);
  });

  it('sends what was under way at a stop again after the restart, and nothing that was recorded', async () => {
    const delivery = await deliver(({ sequence }) => (sequence <= 3 ? 200 : 'hang'), { concurrency: 4 });
    await delivery.publish(10);
    delivery.transport.answer = () => 200;
    const again = await delivery.restart();
    await again.clock.advance(1_000);
    expect(again.transport.sequences).toEqual(range(4, 10));
    expect(again.transport.sent.every(({ attempt }) => attempt === 1)).toBe(true);
  });

  it('tells whoever waits for an attempt when it is on disk', async () => {
    const { clock, publish, dispatcher, state } = await deliver(() => ({ status: 200, after_ms: 300 }));
    const [event_id = ''] = await publish(1);
    const seen: (string | undefined)[] = [];
    void dispatcher.attempted(event_id, 15_000).then(() => seen.push(state(event_id)));
    await clock.advance(299);
    expect(seen).toEqual([]);
    await clock.advance(1);
    expect(seen).toEqual(['delivered']);
  });
});

/** What a receiver does with the n-th request it gets, and what happens meanwhile. */
const step = fc.record({
  answers: fc.array(
    fc.constantFrom<Answer>(200, 204, 400, 408, 429, 503, 'reset', 'hang', { status: 200, after_ms: 700 }),
    { minLength: 1, maxLength: 8 },
  ),
  publish: fc.integer({ min: 0, max: 40 }),
  advance_ms: fc.integer({ min: 0, max: 20_000 }),
  next: fc.constantFrom('nothing', 'pause', 'start', 'restart', 'refuse', 'take', 'break', 'mend'),
});

describe('whatever a receiver, a disk and an operator do', () => {
  it('every record ends, none is attempted twice at once, none after its end, none beyond the bound', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 8 }),
        fc.integer({ min: 1, max: 20 }),
        async (steps, concurrency) => {
          let delivery = await deliver(() => 200, { concurrency });
          const attempted = new Map<number, number[]>();
          const watch = () => {
            for (const { sequence, attempt } of delivery.transport.sent) {
              attempted.set(sequence, [...(attempted.get(sequence) ?? []), attempt]);
            }
            expect(delivery.transport.overlapping).toEqual([]);
            expect(delivery.transport.most_under_way).toBeLessThanOrEqual(concurrency);
          };
          let published = 0;
          for (const { answers, publish, advance_ms, next } of steps) {
            let turn = 0;
            delivery.transport.answer = () => answers[turn++ % answers.length] as Answer;
            if (publish > 0) delivery.store.append(...Array.from({ length: publish }, () => draft()));
            published += publish;
            await delivery.clock.advance(advance_ms);
            if (next === 'pause') delivery.dispatcher.pause();
            if (next === 'start') await delivery.dispatcher.start();
            if (next === 'refuse') delivery.store.refuseOutcomes();
            if (next === 'take') delivery.store.takeOutcomes();
            if (next === 'break') delivery.store.is_out_of_order = true;
            if (next === 'mend') delivery.store.is_out_of_order = false;
            if (next === 'restart') {
              watch();
              delivery.store.takeOutcomes();
              await delivery.clock.advance(0);
              delivery = await delivery.restart();
            }
          }
          delivery.transport.answer = () => 200;
          delivery.store.is_out_of_order = false;
          delivery.store.takeOutcomes();
          await delivery.dispatcher.start();
          await delivery.clock.advance(2 * HOUR_MS);
          watch();
          const { pending, delivered, failed } = delivery.store.rows.counts();
          expect({ pending, ended: delivered + failed }).toEqual({ pending: 0, ended: published });
          expect(attempted.size).toBe(published);
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('time between attempts', () => {
  it('runs no timer while nothing is owed', async () => {
    const clock = new ManualClock();
    const { publish } = await deliver(() => 200, {}, clock);
    await publish(10);
    await clock.advance(60_000);
    expect(clock.timers).toBe(0);
  });
});
