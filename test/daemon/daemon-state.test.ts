import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DaemonState, type LifeStage } from '../../src/daemon/daemon-state.ts';

const STAGES: LifeStage[] = [
  'starting',
  'awaiting_init',
  'running',
  'pausing',
  'paused',
  'stopping',
  'stopped',
];

/** A state that has come this way. */
function reached(...stages: LifeStage[]): DaemonState {
  const state = new DaemonState();
  for (const stage of stages) expect(state.enter(stage), stage).toBe(true);
  return state;
}

describe("a daemon's state", () => {
  it('begins with the start', () => {
    expect(new DaemonState()).toMatchObject({ stage: 'starting', shown: 'starting', is_ending: false });
  });

  it('leads from the start over an init and a pause to the end', () => {
    const state = reached('awaiting_init', 'running', 'pausing', 'paused', 'running', 'stopping', 'stopped');
    expect(state).toMatchObject({ stage: 'stopped', is_ending: true });
  });

  it('shows a pause only once it counts, and a stop from its beginning to its end', () => {
    expect(reached('running', 'pausing').shown).toBe('running');
    expect(reached('running', 'pausing', 'paused').shown).toBe('paused');
    expect(reached('stopping').shown).toBe('stopping');
    expect(reached('stopping', 'stopped').shown).toBe('stopping');
  });

  it('returns to running when a pause fails', () => {
    expect(reached('running', 'pausing', 'running').stage).toBe('running');
  });

  it.each<[LifeStage[], LifeStage]>([
    [[], 'pausing'],
    [['awaiting_init'], 'pausing'],
    [['awaiting_init'], 'starting'],
    [['running'], 'paused'],
    [['running'], 'awaiting_init'],
    [['running', 'pausing', 'paused'], 'pausing'],
    [['stopping'], 'running'],
    [['stopping'], 'paused'],
    [['stopping', 'stopped'], 'stopping'],
  ])('that has come by %j does not enter %s', (way, next) => {
    const state = reached(...way);
    const { stage } = state;
    expect(state.enter(next)).toBe(false);
    expect(state.stage).toBe(stage);
  });

  it('never comes back from an end, whatever is tried', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...STAGES)), (stages) => {
        const state = new DaemonState();
        let has_ended = false;
        for (const stage of stages) {
          state.enter(stage);
          if (has_ended) expect(state.is_ending).toBe(true);
          has_ended = state.is_ending;
          expect(state.shown === 'stopping').toBe(has_ended);
        }
      }),
    );
  });
});
