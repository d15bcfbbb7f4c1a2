import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { draft } from '../support/in-process-store.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { deliver, inTurn, range } from '../support/outbox/delivery.ts';
import type { Answer } from '../support/scripted-transport.ts';

const HOUR_MS = 60 * 60 * 1000;

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
    expect(dispatcher.endpointHealth().health).toBe('ok');
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

  it.each([301, 401, 404])(
    'are made after %i where any status is tried again, within the window',
    async (status) => {
      const { clock, transport, publish, state } = await deliver(
        ({ sequence, attempt }) => (sequence === 1 && attempt > 2 ? 200 : status),
        { retry: 'any', window_ms: HOUR_MS },
      );
      const [first = '', second = ''] = await publish(2);
      await clock.advance(2 * HOUR_MS);
      expect(transport.timesOf(1)).toEqual([0, 500, 1_500]);
      expect(transport.timesOf(2).at(-1)).toBe(HOUR_MS);
      expect([state(first), state(second)]).toEqual(['delivered', 'expired']);
    },
  );

  it('are never made after 410', async () => {
    const { clock, transport, publish, state } = await deliver(() => 410, { retry: 'any' });
    const [event_id = ''] = await publish(1);
    await clock.advance(HOUR_MS);
    expect(transport.sent).toHaveLength(1);
    expect(state(event_id)).toBe('failed');
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

  it.each(['pause', 'stop'] as const)(
    'ends a flush at once with %s, although an attempt hangs',
    async (end) => {
      const { clock, publish, dispatcher } = await deliver(() => 'hang');
      await publish(1);
      let flushed_at_ms = -1;
      void dispatcher.flush(10_000).then(() => {
        flushed_at_ms = clock.monotonicMs();
      });
      await clock.advance(100);
      expect(flushed_at_ms).toBe(-1);
      void dispatcher[end]();
      await clock.advance(0);
      expect(flushed_at_ms).toBe(100);
    },
  );
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
              delivery.store.takeOutcomes();
              await delivery.clock.advance(0);
              watch();
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
