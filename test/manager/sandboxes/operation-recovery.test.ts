import { expect, it } from 'vitest';
import { openDatabase } from '../../../src/manager/database/database.ts';
import type { Operation } from '../../../src/manager/database/tables.ts';
import { eventually } from '../../support/eventually.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { SANDBOXES, startScripted, statusOf } from '../../support/manager/scripted-manager.ts';
import { scriptedParts } from '../../support/manager/scripted-parts.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

describeOnStores('an operation of a replica that died', (fresh) => {
  it('is completed where the runtime or a commit completed it, and undone otherwise', async () => {
    const folder = scratchFolder();
    const { database, runtime, team, stop } = await startScripted(await fresh(), folder);
    const left: [Operation, Parameters<typeof runtime.states.set>[1], string][] = [
      ['claiming', 'running', 'deleted'],
      ['claiming', 'absent', 'gone'],
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
      ['copying', 'paused', 'deleted'],
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

describeOnStores('a claim or fork that is undone', (fresh) => {
  it('is deleted where its daemon has run, and leaves nothing where it has not', async () => {
    const parts = await scriptedParts(await fresh());
    const { claim, forks, database, runtime, recovery, clock, services } = parts;
    const hook = { config: { webhook: { url: 'http://127.0.0.1:9/', secret: 'made for this test' } } };
    const [ready, absent] = [await claim(hook), await claim(hook)];
    const copy = await forks.fork(ready, {});
    runtime.states.set(absent.sandbox_id, 'absent');
    const undone = [ready.sandbox_id, absent.sandbox_id, copy.sandbox_id];
    // What a database knows that was put back into the middle of them.
    const { db } = database;
    for (const [sandbox_id, operation] of [
      [undone[0], 'claiming'],
      [undone[1], 'claiming'],
      [undone[2], 'copying'],
    ] as const) {
      await db
        .updateTable('sandboxes')
        .set({ operation, operation_owner: 'another-machine/1/1', operation_until_ms: 1 })
        .where('sandbox_id', '=', sandbox_id ?? '')
        .execute();
    }
    await eventually(async () => {
      await recovery.run();
      await clock.advance(5_000);
      expect(
        await db.selectFrom('sandboxes').select('operation').where('operation', 'is not', null).execute(),
      ).toEqual([]);
    });
    expect([...runtime.states.keys()]).toEqual([]);
    const queued = await db.selectFrom('outbox').select(['event_type', 'sandbox_id', 'body']).execute();
    expect(queued.map(({ sandbox_id }) => sandbox_id).toSorted()).toEqual([undone[0], undone[2]].toSorted());
    for (const { body } of queued) expect(JSON.parse(body).payload.reason).toBe('runtime_lost');
    expect(await services.store.find(services.store.db, absent.sandbox_id, null)).toBeNull();
    const told = (await parts.feed.page('team_1', undefined, { limit: 100 })).events;
    const kinds = (id?: string) =>
      told.flatMap((event) => (event.sandbox_id === id ? [event.event_type] : []));
    expect(kinds(undone[0]).toSorted()).toEqual(['sandbox.deleted', 'sandbox.killed', 'sandbox.ready']);
    expect(kinds(undone[1])).toEqual(['sandbox.ready']);
  });

  it('frees its idempotency key', async () => {
    const folder = scratchFolder();
    const { runtime, team, stop, database } = await startScripted(await fresh(), folder);
    const key = { 'idempotency-key': 'k' };
    const { data } = await team.post(SANDBOXES, {}, key);
    await stop();
    const { db, close } = await openDatabase(database);
    await db
      .updateTable('sandboxes')
      .set({ operation: 'claiming', operation_owner: 'another-machine/1/1', operation_until_ms: 1 })
      .execute();
    await close();
    const { client } = await startManager(database, { runtime, folder });
    const after = await client('team_1', 'sandboxes:write');
    await eventually(async () => expect(await statusOf(after, data.sandbox_id)).toBe('deleted'));
    const again = await after.post(SANDBOXES, {}, key);
    expect([again.status, again.data.sandbox_id === data.sandbox_id]).toEqual([201, false]);
  });
});
