import { describe, expect, it } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { ApiError } from '../../src/contract/errors.ts';
import type { SandboxEvent } from '../../src/contract/events.ts';
import { emitUntilStored } from '../../src/daemon/lifecycle-event.ts';
import { ManualClock } from '../support/manual-clock.ts';

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
