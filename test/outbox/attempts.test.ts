import { describe, expect, it } from 'vitest';
import { deliver, inTurn, range } from '../support/outbox/delivery.ts';

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

describe('an attempt under way', () => {
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
