import { describe, expect, it } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { PUBLISHES_WAITING_MAX_BYTES } from '../../src/contract/defaults.ts';
import { ApiError } from '../../src/contract/errors.ts';
import type { SandboxEvent } from '../../src/contract/events.ts';
import { emitUntilStored, Publisher } from '../../src/daemon/publisher.ts';
import type { AppendResult } from '../../src/outbox/store.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openClient } from '../support/outbox/open-client.ts';

const RESUMED: SandboxEvent = {
  event_type: 'sandbox.resumed',
  happened_at_ms: Date.UTC(2026, 0, 2),
  payload: { reason: null, paused_ms: 5 },
};

/** A publisher over a real outbox, and what is stored in it. */
async function publishing() {
  const clock = new ManualClock();
  const { store } = await openClient(clock);
  const stored = async () => (await store.after(0, 1_000)).map(({ body }) => JSON.parse(body));
  return { publisher: new Publisher(store, clock), stored, counts: () => store.counts() };
}

/** A publisher whose outbox gives this answer. */
function answered(result: AppendResult): Publisher {
  const publisher = new Publisher({ append: async () => result }, new ManualClock());
  publisher.open();
  return publisher;
}

describe('without a webhook', () => {
  it("only the sandbox's own life is stored, for a manager that reads it, and for nobody to receive", async () => {
    const { publisher, stored } = await publishing();
    await publisher.emit(RESUMED, 'a');
    expect(await stored()).toEqual([]);
    publisher.keepLifecycle();
    await publisher.emit(RESUMED, 'a');
    const ended = { event_type: 'process.started' as const, happened_at_ms: 0, payload: {} as never };
    await publisher.emit(ended, 'b');
    expect(await stored()).toMatchObject([{ event_type: 'sandbox.resumed', sequence: 1 }]);
    await expect(publisher.publish('{}')).rejects.toMatchObject({ code: 'webhook_not_configured' });
  });

  it('is stored where a manager reads it and the webhook is not sent it, without a delivery', async () => {
    const { publisher, stored, counts } = await publishing();
    publisher.keepLifecycle();
    publisher.open(['agent.event']);
    await publisher.emit(RESUMED, 'a');
    await publisher.publish('{}');
    expect(await stored()).toMatchObject([
      { event_type: 'sandbox.resumed', sequence: 1 },
      { event_type: 'agent.event', sequence: 2 },
    ]);
    expect(counts().pending).toBe(1);
  });
});

describe('a publish', () => {
  it('is stored as an agent.event with the payload unchanged, and answered with its identity', async () => {
    const { publisher, stored } = await publishing();
    publisher.open();
    const receipt = await publisher.publish('{"a":1}');
    expect(receipt).toEqual({ event_id: expect.stringMatching(/^evt_/), sequence: 1 });
    expect(await stored()).toMatchObject([
      {
        event_id: receipt.event_id,
        event_type: 'agent.event',
        timestamp: '2026-01-01T00:00:00.000Z',
        payload: { a: 1 },
      },
    ]);
  });

  it('is refused without a webhook, and stores nothing', async () => {
    const { publisher, stored } = await publishing();
    await expect(publisher.publish('{}')).rejects.toMatchObject({ code: 'webhook_not_configured' });
    expect([await stored(), publisher.has_webhook]).toEqual([[], false]);
  });

  it('is refused where the webhook is sent other kinds, and takes no sequence from them', async () => {
    const { publisher, stored } = await publishing();
    publisher.open(['sandbox.resumed']);
    await expect(publisher.publish('{}')).rejects.toMatchObject({
      code: 'webhook_not_configured',
      message: 'The webhook of this sandbox is not sent agent.event.',
    });
    await publisher.emit(RESUMED, 'key');
    expect(await stored()).toMatchObject([{ event_type: 'sandbox.resumed', sequence: 1 }]);
  });

  it('is refused once the publisher is closed, while own events are still stored', async () => {
    const { publisher, stored } = await publishing();
    publisher.open();
    publisher.close();
    await expect(publisher.publish('{}')).rejects.toMatchObject({ code: 'shutting_down' });
    await publisher.emit(RESUMED, 'key');
    expect(await stored()).toHaveLength(1);
  });

  it('repeated under one key has one identity; with another payload it is a conflict', async () => {
    const { publisher, stored } = await publishing();
    publisher.open();
    const first = await publisher.publish('{"a":1}', 'key');
    expect(await publisher.publish('{"a":1}', 'key')).toMatchObject(first);
    await expect(publisher.publish('{"a":2}', 'key')).rejects.toMatchObject({
      code: 'conflict',
      details: { field: 'Idempotency-Key' },
    });
    expect(await stored()).toHaveLength(1);
  });

  it.each([
    [{ outcome: 'full' }, 'outbox_full'],
    [{ outcome: 'unavailable' }, 'outbox_unavailable'],
  ] as const)('that the outbox answers with %j fails with %s and the time to retry', async (result, code) => {
    const refused = answered(result as AppendResult).publish('{}');
    await expect(refused).rejects.toMatchObject({ code, details: { retry_after_s: 1 } });
  });
});

describe("the daemon's own event", () => {
  it('is stored once under its key, which no publisher can use', async () => {
    const { publisher, stored } = await publishing();
    publisher.open();
    await publisher.publish('{}', 'key');
    await publisher.emit(RESUMED, 'key');
    await publisher.emit(RESUMED, 'key');
    expect((await stored()).map(({ event_type, timestamp }) => [event_type, timestamp])).toEqual([
      ['agent.event', '2026-01-01T00:00:00.000Z'],
      ['sandbox.resumed', '2026-01-02T00:00:00.000Z'],
    ]);
  });

  it('is not stored without a webhook', async () => {
    const { publisher, stored } = await publishing();
    await publisher.emit(RESUMED, 'key');
    expect(await stored()).toEqual([]);
  });

  it('is emitted and not stored where the webhook is not sent its kind', async () => {
    const { publisher, stored } = await publishing();
    publisher.open(['agent.event']);
    await publisher.emit(RESUMED, 'first');
    await publisher.emit({ ...RESUMED }, 'second', 'first');
    await publisher.publish('{}');
    expect(await stored()).toMatchObject([{ event_type: 'agent.event', sequence: 1 }]);
  });

  it('that must follow another is stored only if the other one is', async () => {
    const { publisher, stored } = await publishing();
    publisher.open();
    await publisher.emit(RESUMED, 'second', 'first');
    expect(await stored()).toEqual([]);
    await publisher.emit(RESUMED, 'first');
    await publisher.emit(RESUMED, 'second', 'first');
    expect(await stored()).toHaveLength(2);
  });

  it.each([
    [{ outcome: 'full' }, 'outbox_full'],
    [{ outcome: 'unavailable' }, 'outbox_unavailable'],
  ] as const)('that the outbox answers with %j fails with %s', async (result, code) => {
    const refused = answered(result as AppendResult).emit(RESUMED, 'key');
    await expect(refused).rejects.toMatchObject({ code });
  });
});

const READY: SandboxEvent = {
  event_type: 'sandbox.ready',
  happened_at_ms: Date.UTC(2026, 0, 1),
  payload: { http_port: 1, version: '1.0.0', watch_dir: null },
};
const log = createLog('silent');

/** Emits the event to an outbox that refuses it so many times; `keys` has the key of each attempt. */
function emitting(refusals: number, givesUp: (retry_at_ms: number) => boolean) {
  const clock = new ManualClock();
  const keys: string[] = [];
  const publisher = {
    emit: async (event: SandboxEvent, key: string) => {
      expect(event).toBe(READY);
      keys.push(key);
      if (keys.length <= refusals) throw new ApiError('outbox_full');
    },
  };
  return { clock, keys, done: emitUntilStored({ publisher, clock, log }, READY, givesUp) };
}

describe("an event of the sandbox's own life", () => {
  it('is retried each second under one key until the outbox takes it', async () => {
    const { clock, keys, done } = emitting(3, () => false);
    await clock.advance(2_999);
    expect(keys).toHaveLength(3);
    await clock.advance(1);
    await done;
    expect(keys).toHaveLength(4);
    expect(new Set(keys).size).toBe(1);
  });

  it('has a key of its own each time it happens', async () => {
    const first = emitting(0, () => false);
    const second = emitting(0, () => false);
    await Promise.all([first.done, second.done]);
    expect(first.keys).not.toEqual(second.keys);
  });

  it('is given up when the time of the next attempt is too late', async () => {
    const asked: number[] = [];
    const { clock, keys, done } = emitting(Number.POSITIVE_INFINITY, (retry_at_ms) => {
      asked.push(retry_at_ms);
      return retry_at_ms > 2_000;
    });
    await clock.advance(10_000);
    await done;
    expect([asked, keys.length]).toEqual([[1_000, 2_000, 3_000], 3]);
  });
});

describe('publishes that wait for their answer', () => {
  const MIB = 1024 * 1024;

  /** A publisher whose outbox does not answer until it is told to, and what its publishes came to. */
  function hanging() {
    const answers: (() => void)[] = [];
    const append = () =>
      new Promise<AppendResult>((resolve) => {
        answers.push(() => resolve({ outcome: 'committed', records: [{ event_id: 'evt_1', sequence: 1 }] }));
      });
    const publisher = new Publisher({ append }, new ManualClock());
    publisher.open();
    return { publisher, answers };
  }

  it('are refused at once beyond a number of bytes, small ones apart, and are taken again once some are answered', async () => {
    const { publisher, answers } = hanging();
    const large = 'x'.repeat(MIB);
    const LARGE_ONES = PUBLISHES_WAITING_MAX_BYTES / MIB;
    const waiting = Array.from({ length: LARGE_ONES }, () => publisher.publish(large));
    await expect(publisher.publish(large)).rejects.toMatchObject({
      code: 'outbox_unavailable',
      details: { retry_after_s: 1 },
    });
    const small = publisher.publish('x'.repeat(64 * 1024));
    expect(answers.length).toBe(LARGE_ONES + 1);
    answers[0]?.();
    await waiting[0];
    waiting.push(publisher.publish(large));
    for (const answer of answers) answer();
    expect(await Promise.all([small, ...waiting])).toHaveLength(LARGE_ONES + 2);
  });

  it('are refused at once beyond a number, however small they are; own events are not', async () => {
    const { publisher, answers } = hanging();
    for (let i = 0; i < 4_096; i++) void publisher.publish('{}');
    await expect(publisher.publish('{}')).rejects.toMatchObject({ code: 'outbox_unavailable' });
    void publisher.emit(RESUMED, 'a');
    expect(answers.length).toBe(4_097);
  });
});
