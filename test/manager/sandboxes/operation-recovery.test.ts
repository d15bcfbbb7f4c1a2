import { expect, it } from 'vitest';
import { openDatabase } from '../../../src/manager/database/database.ts';
import type { Operation } from '../../../src/manager/database/tables.ts';
import { eventually } from '../../support/eventually.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { SANDBOXES, startScripted, statusOf } from '../../support/manager/scripted-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

describeOnStores('an operation of a replica that died', (fresh) => {
  it('is completed where the runtime or a commit completed it, and undone otherwise', async () => {
    const folder = scratchFolder();
    const { database, runtime, team, stop } = await startScripted(await fresh(), folder);
    const left: [Operation, Parameters<typeof runtime.states.set>[1], string][] = [
      ['claiming', 'running', 'gone'],
      ['pausing', 'paused', 'paused'],
      ['pausing', 'running', 'running'],
      ['pausing', 'lost', 'failed'],
      ['resuming', 'running', 'running'],
      ['resuming', 'paused', 'paused'],
      ['resuming', 'absent', 'paused'],
      ['pausing', 'absent', 'running'],
      ['changing', 'absent', 'running'],
      ['cleaning', 'absent', 'terminating'],
      ['forking', 'paused', 'running'],
      ['copying', 'paused', 'gone'],
      ['changing', 'running', 'running'],
      ['cleaning', 'running', 'deleted'],
    ];
    const ids: string[] = [];
    for (const _ of left) ids.push(await team.claim({ env_vars: { A: '1' } }));
    await stop();
    const { db, close } = await openDatabase(database);
    for (const [i, [operation, state]] of left.entries()) {
      const id = ids[i] as string;
      runtime.states.set(id, state);
      const status =
        operation === 'cleaning' ? 'terminating' : operation === 'resuming' ? 'starting' : 'running';
      await db
        .updateTable('sandboxes')
        .set({ operation, status, operation_owner: 'another-machine/1/1', operation_until_ms: 1 })
        .where('sandbox_id', '=', id)
        .execute();
    }
    await close();
    const { client } = await startManager(database, { runtime, folder });
    const after = await client('team_1', 'sandboxes:write');
    for (const [i, [operation, state, then]] of left.entries()) {
      await eventually(
        async () => expect(await statusOf(after, ids[i] as string), `${operation} ${state}`).toBe(then),
        { timeout: 60_000 },
      );
    }
    const resumed =
      ids[left.findIndex(([operation, state]) => operation === 'resuming' && state === 'running')];
    expect((await after.get(`${SANDBOXES}/${resumed}`)).data.runtime_generation).toBe(2);
    const changed = ids[left.findIndex(([operation]) => operation === 'changing')];
    expect(runtime.calls).toContain(`change ${changed} {"env":{"A":"1"},"memory_mib":512}`);
  });
});
