import { describe, expect, it } from 'vitest';
import { draft } from '../support/in-process-store.ts';
import { deliver, inTurn, range } from '../support/outbox/delivery.ts';

describe('the backlog in memory', () => {
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

  it('wait in memory for their time, 64 at most, and cost no read of the store', async () => {
    const { clock, store, transport, publish } = await deliver(inTurn(408, 408, 200));
    await publish(64);
    const { due } = store.reads;
    await clock.advance(60_000);
    expect(store.reads.due).toBe(due);
    expect(transport.sent.map(({ attempt }) => attempt)).toEqual(
      [1, 2, 3].flatMap((attempt) => Array(64).fill(attempt)),
    );
    await publish(65);
    await clock.advance(60_000);
    expect(store.reads.due).toBeGreaterThan(due);
    expect(store.rows.counts()).toMatchObject({ delivered: 129, pending: 0 });
  });

  it('wait in memory with a mebibyte of bodies at most', async () => {
    const { clock, store } = await deliver(inTurn(408, 200));
    const payload = JSON.stringify({ text: 'x'.repeat(600_000) });
    store.append(draft(payload));
    await clock.advance(100);
    const { due } = store.reads;
    store.append(draft(payload));
    await clock.advance(10_000);
    expect(store.reads.due).toBeGreaterThan(due);
    expect(store.rows.counts()).toMatchObject({ delivered: 2, pending: 0 });
  });

  it('go back to the store when the endpoint backs off, and end with a stop', async () => {
    const { clock, publish, dispatcher, transport } = await deliver(
      ({ sequence, attempt }) => (sequence <= 3 && attempt === 1 ? 408 : 503),
      { concurrency: 3 },
    );
    await publish(3);
    // One for each that waits, and one for the endpoint's deadlines.
    expect(clock.timers).toBeGreaterThanOrEqual(3);
    await publish(3);
    expect(dispatcher.endpointHealth().health).toBe('backing_off');
    await clock.advance(600);
    // One probe, although six are due.
    expect(transport.sent).toHaveLength(7);
    await dispatcher.stop();
    expect(clock.timers).toBe(0);
  });

  it('of records that wait are due when the store says so, whatever their timers say', async () => {
    const { clock, store, transport, publish, dispatcher } = await deliver(inTurn(408, 200));
    await publish(1);
    dispatcher.refresh();
    await clock.advance(100);
    expect(transport.sent).toHaveLength(1);
    const { backlog } = store.rows;
    backlog.due = () => ({ records: [backlog.probeCandidate([]) as never], next_due_ms: null });
    dispatcher.refresh();
    await clock.advance(0);
    expect(transport.timesOf(1)).toEqual([0, 100]);
  });

  it('go on after the store was out of order when they were due', async () => {
    const { clock, store, transport, publish } = await deliver(inTurn(408, 200));
    await publish(65);
    store.is_out_of_order = true;
    await clock.advance(5_000);
    expect(transport.sent).toHaveLength(65 + 64);
    store.is_out_of_order = false;
    await clock.advance(2_000);
    expect(transport.sent).toHaveLength(2 * 65);
  });
});
