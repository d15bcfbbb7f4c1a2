import { describe, expect, it, vi } from 'vitest';
import { ApiError } from '../../../src/contract/errors.ts';
import { openDatabase } from '../../../src/manager/database/database.ts';
import type { Operation } from '../../../src/manager/database/tables.ts';
import { resolutionOf } from '../../../src/manager/sandboxes/transitions.ts';
import { startConsumer } from '../../support/consumer.ts';
import type { Client } from '../../support/manager/manager-client.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { ScriptedRuntime } from '../../support/manager/scripted-runtime.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

const SANDBOXES = '/api/v1/sandboxes';

async function scene(database: string, folder = scratchFolder()) {
  const runtime = new ScriptedRuntime();
  const running = await startManager(database, { runtime, folder });
  const team = await running.client('team_1', 'sandboxes:write');
  return { ...running, runtime, team };
}

async function statusOf(team: Client, id: string): Promise<string> {
  const { status, data } = await team.get(`${SANDBOXES}/${id}`);
  return status === 404 ? 'gone' : data.status;
}

/** Every way in which a sandbox could change. */
async function everyTransition(team: Client, path: string) {
  const answers = [
    await team.post(`${path}/pause`),
    await team.post(`${path}/resume`),
    await team.post(`${path}/fork`),
    await team.post(`${path}/refresh`),
    await team.call('PUT', path, { config: { ttl: 1 } }),
    await team.call('PUT', path, { config: { env_vars: {} } }),
    await team.call('DELETE', path),
  ];
  return answers.map(({ error }) => error?.code);
}

describeOnStores('a transition', (fresh) => {
  it.each([
    ['pause', 'running', 'paused'],
    ['fork', 'running', 'running'],
    ['resume', 'starting', 'running'],
  ] as const)('that is in progress (%s) keeps every other away', async (verb, during, then) => {
    const { runtime, team } = await scene(await fresh());
    const path = `${SANDBOXES}/${await team.claim()}`;
    if (verb === 'resume') await team.post(`${path}/pause`);
    const release = runtime.hold(verb);
    const under_way = team.post(`${path}/${verb}`);
    await vi.waitFor(() => expect(runtime.calls.at(-1)).toContain(verb));
    expect(new Set(await everyTransition(team, path))).toEqual(new Set(['conflict']));
    expect((await team.get(path)).data.status).toBe(during);
    release();
    expect((await under_way).error).toBeUndefined();
    expect((await team.get(path)).data.status).toBe(then);
  });

  it('that the runtime refuses has not happened', async () => {
    const { runtime, team } = await scene(await fresh());
    const id = await team.claim({ env_vars: { A: '1' } });
    const path = `${SANDBOXES}/${id}`;
    const broken = new Error('on purpose');
    for (const verb of ['pause', 'fork', 'change'] as const) runtime.fail(verb, broken);
    expect((await team.post(`${path}/pause`)).error?.code).toBe('internal_error');
    expect(await statusOf(team, id)).toBe('running');
    expect((await team.post(`${path}/fork`)).error?.code).toBe('internal_error');
    expect((await team.get(SANDBOXES)).data.count).toBe(1);
    expect((await team.call('PUT', path, { config: { resources: { memory: '1Gi' } } })).status).toBe(500);
    expect((await team.get(path)).data.resources.memory).toBe('512Mi');
    // What the runtime got of a change that failed is not known: it is told the old values again.
    expect((await team.post(`${path}/pause`)).error?.code).toBe('conflict');
    for (const verb of ['pause', 'change'] as const) runtime.fail(verb, null);
    await vi.waitFor(async () => expect((await team.post(`${path}/pause`)).status).toBe(200), {
      timeout: 10_000,
    });
    expect(runtime.calls).toContain(`change ${id} {"env":{"A":"1"},"memory_mib":512}`);
    runtime.fail('resume', broken);
    expect((await team.post(`${path}/resume`)).status).toBe(500);
    expect((await team.get(path)).data).toMatchObject({ status: 'paused', runtime_generation: 1 });
  });

  it('of a claim that the runtime refuses leaves nothing, and its key free', async () => {
    const { runtime, team } = await scene(await fresh());
    const key = { 'idempotency-key': 'k' };
    const fault = { field: 'webhook.watch_dir' };
    runtime.fail('create', new ApiError('invalid_request', 'webhook.watch_dir: is a file', fault));
    const refused = await team.post(SANDBOXES, {}, key);
    expect(refused.error).toMatchObject({ message: 'config.webhook.watch_dir: is a file' });
    expect(refused.error?.details?.field).toBe('config.webhook.watch_dir');
    expect((await team.get(SANDBOXES)).data.count).toBe(0);
    runtime.fail('create', null);
    expect((await team.post(SANDBOXES, {}, key)).status).toBe(201);
  });

  it('finds a runtime that has died: the sandbox is failed, and its deletion says so', async () => {
    const consumer = await startConsumer();
    const { runtime, team } = await scene(await fresh());
    const ids = [];
    for (let i = 0; i < 4; i++) ids.push(await team.claim({ webhook: { url: consumer.url } }));
    for (const id of ids) runtime.states.set(id, 'lost');
    const [pausing, forking, changing, deleting] = ids.map((id) => `${SANDBOXES}/${id}`) as [
      string,
      string,
      string,
      string,
    ];
    expect((await team.post(`${pausing}/pause`)).error?.details).toEqual({ status: 'failed' });
    expect((await team.post(`${forking}/fork`)).error?.code).toBe('conflict');
    expect((await team.call('PUT', changing, { config: { env_vars: {} } })).error?.code).toBe('conflict');
    expect((await team.get(`${SANDBOXES}?status=failed`)).data.count).toBeGreaterThanOrEqual(3);
    for (const path of [pausing, forking, changing, deleting]) {
      expect((await team.call('DELETE', path)).status).toBe(200);
    }
    await consumer.arrival('sandbox.deleted', 4);
    expect(new Set(consumer.deliveries.map(({ event }) => event.payload.reason))).toEqual(
      new Set(['runtime_lost']),
    );
    await vi.waitFor(async () => expect((await team.get(SANDBOXES)).data.count).toBe(0));
  });

  it('gives the runtime what the record says, a child its own identity', async () => {
    const { runtime, team } = await scene(await fresh());
    const webhook = { url: 'http://127.0.0.1:9/hook', secret: 'a-key', watch_dir: '/a/../b' };
    const id = await team.claim({ webhook, env_vars: { A: '1' }, resources: { memory: '1Gi', cpu: '0.5' } });
    const spec = {
      team_id: 'team_1',
      webhook: { url: 'http://127.0.0.1:9/hook', secret: 'a-key', watch_dir: '/b' },
      env: { A: '1' },
      memory_mib: 1024,
      cpu_millis: 500,
    };
    const record_key = runtime.specs.get(id)?.record_key;
    expect(record_key).toMatch(/^[0-9a-f]{64}$/);
    expect(runtime.specs.get(id)).toEqual({ ...spec, sandbox_id: id, record_key });
    await team.call('PUT', `${SANDBOXES}/${id}`, { config: { env_vars: { B: '2' } } });
    expect(runtime.calls.at(-1)).toBe(`change ${id} {"env":{"B":"2"}}`);
    const { data } = await team.post(`${SANDBOXES}/${id}/fork`);
    const child_key = runtime.specs.get(data.sandbox.id)?.record_key;
    expect(child_key).not.toBe(record_key);
    expect(runtime.specs.get(data.sandbox.id)).toEqual({
      ...spec,
      record_key: child_key,
      env: { B: '2' },
      sandbox_id: data.sandbox.id,
    });
  });
});

describeOnStores('the end of a ttl', (fresh) => {
  it('pauses, and that of a hard ttl deletes, within a second', async () => {
    const consumer = await startConsumer();
    const { runtime, team } = await scene(await fresh());
    const began_ms = Date.now();
    const id = await team.claim({ ttl: 1, hard_ttl: 2, webhook: { url: consumer.url } });
    await vi.waitFor(async () => expect(await statusOf(team, id)).toBe('paused'), { timeout: 5_000 });
    expect(Date.now() - began_ms).toBeLessThan(2_000);
    await vi.waitFor(async () => expect(await statusOf(team, id)).toBe('gone'), { timeout: 5_000 });
    expect(Date.now() - began_ms).toBeGreaterThanOrEqual(2_000);
    const { event } = await consumer.arrival('sandbox.deleted');
    expect(event.payload).toEqual({ reason: 'ttl_expired', actor: null });
    expect(runtime.calls.filter((call) => call.startsWith('pause'))).toHaveLength(1);
  });
});

describeOnStores('what a replica that died has left behind', (fresh) => {
  it('is finished where it was done or committed, and undone where it was not', async () => {
    const folder = scratchFolder();
    const { database, runtime, team, stop } = await scene(await fresh(), folder);
    const left: [Operation, Parameters<typeof runtime.states.set>[1], string][] = [
      ['claiming', 'running', 'gone'],
      ['pausing', 'paused', 'paused'],
      ['pausing', 'running', 'running'],
      ['pausing', 'lost', 'failed'],
      ['resuming', 'running', 'running'],
      ['resuming', 'paused', 'paused'],
      ['resuming', 'absent', 'failed'],
      ['forking', 'paused', 'running'],
      ['copying', 'paused', 'gone'],
      ['changing', 'running', 'running'],
      ['cleaning', 'running', 'gone'],
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
      await vi.waitFor(
        async () => expect(await statusOf(after, ids[i] as string), `${operation} ${state}`).toBe(then),
        { timeout: 10_000 },
      );
    }
    const resumed =
      ids[left.findIndex(([operation, state]) => operation === 'resuming' && state === 'running')];
    expect((await after.get(`${SANDBOXES}/${resumed}`)).data.runtime_generation).toBe(2);
    const changed = ids[left.findIndex(([operation]) => operation === 'changing')];
    expect(runtime.calls).toContain(`change ${changed} {"env":{"A":"1"},"memory_mib":512}`);
  });
});

describe('a resolutionOf', () => {
  it('lets nothing be, and finishes every deletion', () => {
    const operations = [
      'claiming',
      'pausing',
      'resuming',
      'changing',
      'forking',
      'copying',
      'cleaning',
    ] as const;
    for (const operation of operations) {
      for (const state of ['running', 'paused', 'lost', 'absent', 'untracked'] as const) {
        const settled = resolutionOf({ operation, status: 'running' }, state);
        if (operation === 'cleaning') expect(settled).toBe('clean');
        expect(settled).not.toBe('starting');
        expect(resolutionOf({ operation, status: 'terminating' }, state)).toBe('clean');
      }
    }
  });
});
