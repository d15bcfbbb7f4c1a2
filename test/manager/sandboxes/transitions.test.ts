import { describe, expect, it } from 'vitest';
import { resolutionOf, transitionError } from '../../../src/manager/sandboxes/transitions.ts';

describe('a refused transition', () => {
  it('is not_found or a conflict that names the status', () => {
    expect(transitionError({ refused: 'not_found', status: null, deleted_at_ms: null })).toMatchObject({
      code: 'not_found',
    });
    for (const refused of ['busy', 'status'] as const) {
      expect(transitionError({ refused, status: 'paused' })).toMatchObject({
        code: 'conflict',
        details: { status: 'paused' },
      });
    }
  });
});

describe('the resolution of an abandoned operation', () => {
  it('resolves every operation but cleanups, which are only continued', () => {
    const operations = ['claiming', 'pausing', 'resuming', 'changing', 'forking', 'copying'] as const;
    for (const operation of operations) {
      for (const state of ['running', 'paused', 'lost', 'absent', 'untracked'] as const) {
        expect(resolutionOf({ operation }, state)).not.toBe('starting');
      }
    }
  });
});
