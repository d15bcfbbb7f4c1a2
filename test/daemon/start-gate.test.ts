import { describe, expect, it } from 'vitest';
import { StartGate, startingError } from '../../src/daemon/start-gate.ts';
import { ManualClock } from '../support/manual-clock.ts';

/** A gate, and how to ask for passage; `passed` counts who got through. */
function gated() {
  const clock = new ManualClock();
  const gate = new StartGate(clock);
  const counted = { passed: 0 };
  const ask = () => void gate.passed().then(() => (counted.passed += 1));
  return { clock, gate, counted, ask };
}

describe('the gate of the start', () => {
  it('holds requests until it opens, and none after that', async () => {
    const { clock, gate, counted, ask } = gated();
    ask();
    ask();
    await clock.advance(1_000);
    expect([gate.is_open, counted.passed]).toEqual([false, 0]);
    gate.open();
    await clock.advance(0);
    expect([gate.is_open, counted.passed]).toEqual([true, 2]);
    ask();
    await clock.advance(0);
    expect(counted.passed).toBe(3);
  });

  it('lets those go that wait when it is released, and holds the next ones', async () => {
    const { clock, gate, counted, ask } = gated();
    ask();
    gate.release();
    ask();
    await clock.advance(0);
    expect([gate.is_open, counted.passed]).toEqual([false, 1]);
    gate.open();
    await clock.advance(0);
    expect(counted.passed).toBe(2);
  });

  it('holds a request for at most 5 s, and leaves no timer behind', async () => {
    const { clock, gate, counted, ask } = gated();
    ask();
    await clock.advance(4_999);
    expect(counted.passed).toBe(0);
    await clock.advance(1);
    expect(counted.passed).toBe(1);
    ask();
    gate.open();
    await clock.advance(0);
    expect(clock.timers).toBe(0);
  });

  it('has a refusal that asks the client to come back after a second', () => {
    expect(startingError()).toMatchObject({
      code: 'outbox_unavailable',
      status: 503,
      details: { retry_after_s: 1 },
    });
  });
});
