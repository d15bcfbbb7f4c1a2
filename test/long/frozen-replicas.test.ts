import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { unifiedMountPoint } from '../../src/base/linux/cgroup.ts';
import { FrozenReplicas, type FrozenWorld, VERBS } from '../support/manager/frozen-replicas.ts';
import { IS_ROOT } from '../support/rights.ts';
import { groupParent, Sandboxes } from '../support/runtime/sandboxes.ts';
import { scratchFolder } from '../support/scratch.ts';

/** Sandboxes of this machine, with what the kernel says of those that are paused. */
function localWorld(): FrozenWorld {
  const data_dir = join(scratchFolder(), 'data');
  const opened: Sandboxes[] = [];
  return {
    async open() {
      const sandboxes = await Sandboxes.open('local', data_dir);
      opened.push(sandboxes);
      return sandboxes.runtime;
    },
    async publish(sandbox_id) {
      const [sandboxes] = opened as [Sandboxes];
      const ids: string[] = [];
      for (const n of [1, 2, 3]) {
        ids.push((await sandboxes.ask(sandbox_id, 'POST', '/webhook/publish', { payload: { n } })).event_id);
      }
      return ids;
    },
    async differences(sandbox_id, status) {
      const group = join(unifiedMountPoint() ?? '/nowhere', groupParent(data_dir), sandbox_id, 'frozen');
      const is_frozen =
        existsSync(group) && readFileSync(join(group, 'cgroup.freeze'), 'utf8').trim() === '1';
      return is_frozen && status === 'running' ? [`${sandbox_id} runs and is frozen`] : [];
    },
  };
}

describe.skipIf(!IS_ROOT)('a replica that is frozen and thawed after another has taken over', () => {
  for (const [name, verb] of Object.entries(VERBS)) {
    for (const of of ['verb', 'recovery'] as const) {
      it(`leaves on this machine what is recorded, at each step of ${of} of ${name}`, async () => {
        const replicas = await FrozenReplicas.open(localWorld());
        const steps = await replicas.steps(verb, of);
        expect(steps).not.toEqual([]);
        const freeze = of === 'verb' ? replicas.freezeVerb : replicas.freezeRecovery;
        for (const step of steps) {
          for (const [moment, clock] of [
            ['before', 'goes on'],
            ['after', 'stands still'],
          ] as const) {
            await freeze.call(replicas, verb, step, moment, clock);
          }
        }
      });
    }
  }
});
