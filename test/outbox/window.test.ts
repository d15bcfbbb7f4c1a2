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
});
