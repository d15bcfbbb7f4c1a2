import { describe, expect, it } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { ApiError } from '../../src/contract/errors.ts';
import type { SandboxEvent } from '../../src/contract/events.ts';
import { LastEvent } from '../../src/daemon/last-event.ts';
import { ManualClock } from '../support/manual-clock.ts';

const GRACE_MS = 5_000;
const log = createLog('silent');

/** The step with an outbox that refuses the first events, and a note of everything that it does. */
function lastEvent(refusals = 0) {
  const clock = new ManualClock();
  const steps: string[] = [];
  const events: SandboxEvent[] = [];
  const keys = new Set<string>();
  let left = refusals;
  const publisher = {
    close: () => void steps.push('close'),
    emit: async (event: SandboxEvent, key: string) => {
      keys.add(key);
      if (left-- > 0) {
        steps.push('refused');
        throw new ApiError('outbox_unavailable');
      }
      steps.push('emit');
      events.push(event);
    },
  };
  const dispatcher = { flush: async (within_ms: number) => void steps.push(`flush ${within_ms}`) };
  const parts = { clock, log, publisher, dispatcher, grace_ms: GRACE_MS, uptimeMs: () => 42 };
  return { clock, steps, events, keys, last_event: new LastEvent(parts) };
}

describe('the last event', () => {
  it('refuses publishes, says how the sandbox ended, and then delivers what is pending', async () => {
    const { last_event, steps, events } = lastEvent();
    last_event.announce({ reason: 'signal', signal: 'SIGTERM' });
    await Promise.all([last_event.stop(), last_event.stop()]);
    expect(steps).toEqual(['close', 'emit', `flush ${GRACE_MS}`]);
    expect(events).toEqual([
      {
        event_type: 'sandbox.killed',
        happened_at_ms: Date.UTC(2026, 0, 1),
        payload: { reason: 'signal', signal: 'SIGTERM', uptime_ms: 42 },
      },
    ]);
  });

  it('is followed by no delivery when the manager has ended the sandbox', async () => {
    const { last_event, steps } = lastEvent();
    last_event.announce({ reason: 'api', signal: null });
    await last_event.stop();
    expect(steps).toEqual(['close', 'emit']);
  });

  it('is tried again under the same key until the outbox takes it', async () => {
    const { last_event, clock, steps, keys } = lastEvent(3);
    last_event.announce({ reason: 'signal', signal: 'SIGINT' });
    const stopped = last_event.stop();
    await clock.advance(3_000);
    await stopped;
    expect(steps).toEqual(['close', 'refused', 'refused', 'refused', 'emit', `flush ${GRACE_MS}`]);
    expect(keys.size).toBe(1);
  });

  it('is given up after the grace', async () => {
    const { last_event, clock, steps } = lastEvent(Number.POSITIVE_INFINITY);
    last_event.announce({ reason: 'signal', signal: 'SIGTERM' });
    const stopped = last_event.stop();
    await clock.advance(GRACE_MS);
    await stopped;
    expect(steps.filter((step) => step === 'refused')).toHaveLength(6);
    expect(steps.at(-1)).toBe(`flush ${GRACE_MS}`);
  });

  it('is tried once by a hurried stop, which waits for no delivery', async () => {
    const { last_event, steps } = lastEvent(1);
    last_event.announce({ reason: 'signal', signal: 'SIGTERM' });
    last_event.hurry();
    await last_event.stop();
    expect(steps).toEqual(['close', 'refused']);
  });

  it('does not exist for a sandbox whose start has failed', async () => {
    const { last_event, steps } = lastEvent();
    await last_event.stop();
    expect(steps).toEqual([]);
  });
});
