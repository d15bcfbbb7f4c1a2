import { expect, it } from 'vitest';
import { comparisonJob } from '../../../src/manager/sandboxes/housekeeping.ts';
import { eventually } from '../../support/eventually.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { SANDBOXES, startScripted, statusOf } from '../../support/manager/scripted-manager.ts';
import { scriptedParts } from '../../support/manager/scripted-parts.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

/** The parts of a manager, and its comparison of what is recorded with what runs. */
async function compared(database_url: string) {
  const parts = await scriptedParts(database_url);
  const { services, housekeeping, operation_recovery } = parts;
  return { ...parts, comparison: comparisonJob(services, housekeeping, operation_recovery) };
}

describeOnStores('a sandbox that is not in its recorded status', (fresh) => {
  it('is brought to it, whichever it is, without a change of what is recorded', async () => {
    const { claim, sandboxes, runtime, comparison } = await compared(await fresh());
    const [running, paused, right] = [await claim(), await claim(), await claim()];
    await sandboxes.pause(paused, null);
    runtime.states.set(running.sandbox_id, 'paused');
    runtime.states.set(paused.sandbox_id, 'running');
    const before = await Promise.all([running, paused, right].map((named) => sandboxes.get(named)));
    runtime.calls.length = 0;
    await comparison.run();
    expect([...runtime.states.values()]).toEqual(['running', 'paused', 'running']);
    expect(runtime.calls.filter((call) => call.includes(right.sandbox_id))).toEqual([]);
    const after = await Promise.all([running, paused, right].map((named) => sandboxes.get(named)));
    const recorded = ({ status, held_mib, runtime_generation, operation }: (typeof after)[0]) => ({
      ...{ status, held_mib, runtime_generation, operation },
    });
    expect(after.map(recorded)).toEqual(before.map(recorded));
    runtime.calls.length = 0;
    await comparison.run();
    expect(runtime.calls).toEqual([]);
  });

  it('is left alone where an operation is in progress, has begun since, or it has died', async () => {
    const { claim, sandboxes, runtime, comparison } = await compared(await fresh());
    const [pausing, resumed, lost] = [await claim(), await claim(), await claim()];
    const release = runtime.hold('pause');
    const pause = sandboxes.pause(pausing, null);
    await eventually(() => expect(runtime.calls).toContain(`pause ${pausing.sandbox_id}`));
    runtime.states.set(lost.sandbox_id, 'lost');
    const { inspect } = runtime;
    const asked: string[] = [];
    runtime.inspect = async (sandbox_id = '') => {
      asked.push(sandbox_id);
      if (sandbox_id !== resumed.sandbox_id) return inspect.call(runtime, sandbox_id);
      // Between the look at the row and the answer of the daemon it was paused and resumed.
      runtime.inspect = inspect;
      release();
      await sandboxes.pause(resumed, null);
      await sandboxes.resume(resumed, null);
      return 'paused';
    };
    await comparison.run();
    await pause;
    expect(asked).not.toContain(pausing.sandbox_id);
    expect(runtime.calls.filter((call) => call.startsWith('change'))).toEqual([]);
    expect((await sandboxes.get(resumed)).operation_owner).toBeNull();
    expect((await sandboxes.get(lost)).status).toBe('running');
  });

  it('does not keep others from it, and is asked again, where it cannot be asked', async () => {
    const { claim, runtime, comparison } = await compared(await fresh());
    const [first, second] = [await claim(), await claim()];
    runtime.states.set(second.sandbox_id, 'paused');
    const { inspect } = runtime;
    runtime.inspect = async (sandbox_id = '') => {
      if (sandbox_id === first.sandbox_id) throw new Error('nobody answers');
      return inspect.call(runtime, sandbox_id);
    };
    expect(await comparison.run()).toBe(60_000);
    expect(runtime.states.get(second.sandbox_id)).toBe('running');
    runtime.inspect = inspect;
    expect(await comparison.run()).toBeGreaterThan(3_600_000);
  });
});

describeOnStores('a manager that starts', (fresh) => {
  it('brings sandboxes to what its database records', async () => {
    const folder = scratchFolder();
    const { database, runtime, team, stop } = await startScripted(await fresh(), folder);
    const id = await team.claim();
    await stop();
    runtime.states.set(id, 'paused');
    const { client } = await startManager(database, { runtime, folder });
    await eventually(() => expect(runtime.states.get(id)).toBe('running'));
    const after = await client('team_1', 'sandboxes:write');
    await eventually(async () => {
      expect((await after.post(`${SANDBOXES}/${id}/pause`, {})).status).toBe(200);
    });
    expect(await statusOf(after, id)).toBe('paused');
  });
});
