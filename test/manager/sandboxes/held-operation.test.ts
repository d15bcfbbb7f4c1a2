import { describe, expect, it } from 'vitest';
import { FrozenReplicas, VERBS } from '../../support/manager/frozen-replicas.ts';
import { ScriptedRuntime } from '../../support/manager/scripted-runtime.ts';

describe('a replica that is frozen and thawed after another has taken over', () => {
  for (const [name, verb] of Object.entries(VERBS)) {
    for (const of of ['verb', 'recovery'] as const) {
      it(`leaves what is recorded, at each step of ${name}${of === 'verb' ? '' : ', in its recovery'}`, async () => {
        const runtime = new ScriptedRuntime();
        const replicas = await FrozenReplicas.open({ open: async () => runtime });
        const steps = await replicas.steps(verb, of);
        expect(steps).not.toEqual([]);
        const freeze = of === 'verb' ? replicas.freezeVerb : replicas.freezeRecovery;
        for (const step of steps) {
          await freeze.call(replicas, verb, step, 'before', 'goes on');
          await freeze.call(replicas, verb, step, 'after', 'goes on');
          await freeze.call(replicas, verb, step, 'after', 'stands still');
        }
      });
    }
  }
});
