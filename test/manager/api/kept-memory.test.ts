import { expect, it } from 'vitest';
import { openDatabase } from '../../../src/manager/database/database.ts';
import { eventually } from '../../support/eventually.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { SANDBOXES, startScripted, statusOf } from '../../support/manager/scripted-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

describeOnStores('memory of a pause, resume or fork', (fresh) => {
  it('is kept unless it is said otherwise, and the answer says what was kept', async () => {
    const { team } = await startScripted(await fresh());
    const path = `${SANDBOXES}/${await team.claim()}`;
    const kept = async (verb: string, body?: object) =>
      (await team.post(`${path}/${verb}`, body)).data.memory;
    expect([await kept('pause'), await kept('resume')]).toEqual([true, true]);
    expect([await kept('pause', { memory: true }), await kept('resume', { memory: true })]).toEqual([
      true,
      true,
    ]);
    expect([await kept('pause', { memory: false }), await kept('resume')]).toEqual([false, false]);
    expect([await kept('pause'), await kept('resume', { memory: false })]).toEqual([true, false]);
    for (const body of [undefined, { memory: true }, { memory: false }]) {
      expect(await kept('fork', body)).toBe(false);
    }
    expect((await team.get(path)).data).toMatchObject({ status: 'running', runtime_generation: 5 });
  });

  it('is told after a replica died in the middle of a pause without it, whose lease has ended once', async () => {
    const folder = scratchFolder();
    const { database, runtime, team, stop } = await startScripted(await fresh(), folder);
    const [done, undone] = [await team.claim(), await team.claim()] as const;
    await runtime.pause(done, null, undefined, false);
    await stop();
    const { db, close } = await openDatabase(database);
    const left = {
      operation: 'pausing',
      operation_owner: 'another-machine/1/1',
      operation_until_ms: 1,
    } as const;
    await db.updateTable('sandboxes').set(left).execute();
    await close();
    const { client } = await startManager(database, { runtime, folder });
    const after = await client('team_1', 'sandboxes:write', 'usage:read');
    const within = { timeout: 60_000 };
    await eventually(async () => expect(await statusOf(after, done)).toBe('paused'), within);
    await eventually(async () => expect(runtime.calls).toContain(`resume ${undone}`), within);
    expect(await statusOf(after, undone)).toBe('running');
    const type = 'window_type=sandbox.runtime_mib_milliseconds';
    const { windows } = (await after.get(`/api/v1/usage/windows?${type}`)).data;
    expect(windows.map((each: { sandbox_id: string }) => each.sandbox_id)).toEqual([done]);
    expect((await after.post(`${SANDBOXES}/${done}/resume`)).data.memory).toBe(false);
  });

  it('that is no boolean is refused by name, and nothing is changed', async () => {
    const { team, runtime } = await startScripted(await fresh());
    const path = `${SANDBOXES}/${await team.claim()}`;
    const before = [...runtime.calls];
    for (const verb of ['pause', 'resume', 'fork']) {
      for (const memory of ['yes', 1, null]) {
        expect(await team.post(`${path}/${verb}`, { memory }), `${verb} ${memory}`).toMatchObject({
          status: 400,
          error: { code: 'invalid_request', details: { field: 'memory' } },
        });
      }
    }
    expect(runtime.calls).toEqual(before);
    expect((await team.get(path)).data.status).toBe('running');
  });
});
