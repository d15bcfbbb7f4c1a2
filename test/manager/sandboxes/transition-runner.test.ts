import { expect, it } from 'vitest';
import { startConsumer } from '../../support/consumer.ts';
import { eventually } from '../../support/eventually.ts';
import type { Client } from '../../support/manager/manager-client.ts';
import { SANDBOXES, startScripted, statusOf } from '../../support/manager/scripted-manager.ts';
import { describeOnStores } from '../../support/stores.ts';

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
  ] as const)('(%s) keeps every other one away while it is in progress', async (verb, during, then) => {
    const { runtime, team } = await startScripted(await fresh());
    const path = `${SANDBOXES}/${await team.claim()}`;
    if (verb === 'resume') await team.post(`${path}/pause`);
    const release = runtime.hold(verb);
    const under_way = team.post(`${path}/${verb}`);
    await eventually(() => expect(runtime.calls.at(-1)).toContain(verb));
    expect(new Set(await everyTransition(team, path))).toEqual(new Set(['conflict']));
    expect((await team.get(path)).data.status).toBe(during);
    release();
    expect((await under_way).error).toBeUndefined();
    expect((await team.get(path)).data.status).toBe(then);
  });

  it('has not happened if the runtime refuses it', async () => {
    const { runtime, team } = await startScripted(await fresh());
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
    await eventually(async () => expect((await team.post(`${path}/pause`)).status).toBe(200), {
      timeout: 60_000,
    });
    expect(runtime.calls).toContain(`change ${id} {"env":{"A":"1"},"memory_mib":512}`);
    runtime.fail('resume', broken);
    expect((await team.post(`${path}/resume`)).status).toBe(500);
    expect((await team.get(path)).data).toMatchObject({ status: 'paused', runtime_generation: 1 });
  });

  it('finds out that a runtime has died: the sandbox is failed, and its deletion says so', async () => {
    const consumer = await startConsumer();
    const { runtime, team } = await startScripted(await fresh());
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
      expect((await team.call('DELETE', path)).status).toBe(202);
    }
    await consumer.arrival('sandbox.deleted', 4);
    expect(new Set(consumer.deliveries.map(({ event }) => event.payload.reason))).toEqual(
      new Set(['runtime_lost']),
    );
    await eventually(async () => expect((await team.get(SANDBOXES)).data.count).toBe(0));
  });
});
