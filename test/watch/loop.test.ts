import { describe, expect, it } from 'vitest';
import { BLOCKED_RETRY_MS } from '../../src/watch/index/limits.ts';
import { Loop, type PassResult } from '../../src/watch/loop.ts';
import { ManualClock } from '../support/manual-clock.ts';

/** A loop over given results, whose work is due at `due_ms`. */
function trial(results: PassResult[], due_ms: number | null = 0) {
  const clock = new ManualClock();
  const state = { due_ms, steps: 0, rests: [] as PassResult[] };
  const loop = new Loop({
    clock,
    step: async () => {
      state.steps++;
      const result = results.shift() ?? 'idle';
      if (result === 'idle') state.due_ms = null;
      return result;
    },
    nextDueMs: () => state.due_ms,
    onRest: (result) => state.rests.push(result),
  });
  return { clock, loop, state };
}

describe('the loop', () => {
  it('runs passes until nothing is due, and then has no timer', async () => {
    const { clock, loop, state } = trial(['more', 'more', 'idle']);
    loop.schedule();
    await clock.advance(1);
    expect(state).toMatchObject({ steps: 3, rests: ['idle'] });
    expect(clock.timers).toBe(0);
  });

  it('waits for work that is due later, and no longer than for the earliest', async () => {
    const { clock, loop, state } = trial(['idle'], 50);
    loop.schedule();
    state.due_ms = 20;
    loop.schedule();
    expect(clock.timers).toBe(1);
    await clock.advance(19);
    expect(state.steps).toBe(0);
    await clock.advance(1);
    expect(state.steps).toBe(1);
  });

  it('pauses while it is blocked, whatever else becomes due', async () => {
    const { clock, loop, state } = trial(['blocked', 'idle']);
    loop.schedule();
    await clock.advance(1);
    loop.schedule();
    await clock.advance(BLOCKED_RETRY_MS / 2);
    expect(state).toMatchObject({ steps: 1, rests: ['blocked'] });
    await clock.advance(BLOCKED_RETRY_MS);
    expect(state).toMatchObject({ steps: 2, rests: ['blocked', 'idle'] });
  });

  it('runs nothing after it was stopped', async () => {
    const { clock, loop, state } = trial(['more']);
    loop.schedule();
    await loop.stop();
    loop.schedule();
    await clock.advance(1);
    expect(state.steps).toBe(0);
  });
});
