import { expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import type { Client } from '../../support/manager/manager-client.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { ScriptedRuntime } from '../../support/manager/scripted-runtime.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

const TEAM = 'team_1';

describeOnStores('the budget of the node', (fresh) => {
  it('refuses what it cannot hold', async () => {
    const options = { node_memory: '1Gi', node_cpus: '0.5', node_sandboxes: '3', node_disk: '512Mi' };
    const manager = await startManager(await fresh(), { options });
    const client = await manager.client(TEAM, 'sandboxes:write');
    const claim = (resources: object) => client.post('/api/v1/sandboxes', { config: { resources } });
    const exhausted = (resource: string) => ({
      status: 503,
      error: { code: 'capacity_exhausted', details: { resource } },
    });
    const first = await client.claim({ resources: { memory: '512Mi' } });
    expect(await claim({ memory: '513Mi' })).toMatchObject(exhausted('memory'));
    expect(await claim({ memory: '128Mi', cpu: 0.5 })).toMatchObject(exhausted('cpu'));
    await client.claim({ resources: { memory: '128Mi' } });
    expect(
      await client.call('PUT', `/api/v1/sandboxes/${first}`, { config: { resources: { memory: '1Gi' } } }),
    ).toMatchObject(exhausted('memory'));
    await client.claim({ resources: { memory: '128Mi' } });
    expect(await claim({ memory: '128Mi' })).toMatchObject(exhausted('sandboxes'));
    await client.post(`/api/v1/sandboxes/${first}/pause`);
    const fourth = await client.claim({ resources: { memory: '128Mi' } });
    expect(await client.post(`/api/v1/sandboxes/${first}/resume`)).toMatchObject(exhausted('sandboxes'));
    await client.post(`/api/v1/sandboxes/${fourth}/pause`);
    expect(await claim({ memory: '128Mi' })).toMatchObject(exhausted('disk'));
    expect(await client.post(`/api/v1/sandboxes/${fourth}/fork`)).toMatchObject(exhausted('disk'));
    expect((await client.post(`/api/v1/sandboxes/${first}/resume`)).status).toBe(200);
  });

  it('gives a sandbox the share of half of the disk that its memory is of the memory, unless it asks for more', async () => {
    const options = { node_memory: '16Gi', node_disk: '100Gi' };
    const manager = await startManager(await fresh(), { options });
    const client = await manager.client(TEAM, 'sandboxes:write');
    const diskOf = async (resources: object) => {
      const sandbox_id = await client.claim({ resources });
      return (await client.get(`/api/v1/sandboxes/${sandbox_id}`)).data.resources.disk;
    };
    expect(await diskOf({})).toBe('1600Mi');
    expect(await diskOf({ memory: '1Gi' })).toBe('3200Mi');
    expect(await diskOf({ memory: '8Gi' })).toBe('10Gi');
    const asked = { memory: '128Mi', disk: '86Gi' };
    expect(await client.post('/api/v1/sandboxes', { config: { resources: asked } })).toMatchObject({
      error: { code: 'capacity_exhausted', details: { resource: 'disk' } },
    });
    expect(await diskOf({ ...asked, disk: '85Gi' })).toBe('85Gi');
  });

  it('refuses where active and paused ones together take its memory, and never a pause', async () => {
    const manager = await startManager(await fresh(), { options: { node_memory: '768Mi' } });
    const client = await manager.client(TEAM, 'sandboxes:write');
    const first = await client.claim({ resources: { memory: '256Mi' } });
    const fork = () => client.post(`/api/v1/sandboxes/${first}/fork`);
    const change = (id: string, path: string) => client.post(`/api/v1/sandboxes/${id}/${path}`);
    const exhausted = (requested: string, available: string) => ({
      status: 503,
      error: { code: 'capacity_exhausted', details: { resource: 'memory', requested, available } },
    });
    // Each takes 128 MiB, whatever it leases.
    for (let i = 0; i < 4; i++) expect((await fork()).status).toBe(201);
    expect(await fork()).toMatchObject(exhausted('128Mi', '0Mi'));
    expect((await change(first, 'pause')).status).toBe(200);
    const second = await client.claim({ resources: { memory: '128Mi' } });
    expect(await change(first, 'resume')).toMatchObject(exhausted('256Mi', '128Mi'));
    expect((await change(second, 'pause')).status).toBe(200);
    expect(await change(first, 'resume')).toMatchObject(exhausted('256Mi', '128Mi'));
    await client.call('DELETE', `/api/v1/sandboxes/${second}`);
    await eventually(async () => expect((await change(first, 'resume')).status).toBe(200));
  });

  it('counts a paused one whole where nobody knows what it holds, and a change of that', async () => {
    const runtime = new ScriptedRuntime();
    runtime.heldMib = () => null;
    const manager = await startManager(await fresh(), { options: { node_memory: '512Mi' }, runtime });
    const client = await manager.client(TEAM, 'sandboxes:write');
    const first = await client.claim({ resources: { memory: '256Mi' } });
    expect((await client.post(`/api/v1/sandboxes/${first}/pause`)).status).toBe(200);
    const claimed = (memory: string) =>
      client.post('/api/v1/sandboxes', { config: { resources: { memory } } });
    expect(await claimed('257Mi')).toMatchObject({ error: { details: { available: '256Mi' } } });
    const change = (memory: string) =>
      client.call('PUT', `/api/v1/sandboxes/${first}`, { config: { resources: { memory } } });
    expect(await change('513Mi')).toMatchObject({ error: { code: 'capacity_exhausted' } });
    expect((await change('384Mi')).status).toBe(200);
    expect(await claimed('256Mi')).toMatchObject({ error: { details: { available: '128Mi' } } });
    expect((await claimed('128Mi')).status).toBe(201);
  });

  it('counts the memory of a deleted one until it has ended', async () => {
    const runtime = new ScriptedRuntime();
    const manager = await startManager(await fresh(), { options: { node_memory: '256Mi' }, runtime });
    const client = await manager.client(TEAM, 'sandboxes:write');
    const first = await client.claim({ resources: { memory: '256Mi' } });
    const release = runtime.hold('end');
    await client.call('DELETE', `/api/v1/sandboxes/${first}`);
    const claim = () => client.post('/api/v1/sandboxes', { config: { resources: { memory: '256Mi' } } });
    expect(await claim()).toMatchObject({ error: { code: 'capacity_exhausted' } });
    release();
    await eventually(async () => expect((await claim()).status).toBe(201));
  });

  it('keeps to the memory of the node, whichever teams claim', async () => {
    const url = await fresh();
    const folder = scratchFolder();
    const manager = await startManager(url, { folder, options: { node_memory: '1Gi' } });
    const clients: Client[] = [];
    for (let i = 0; i < 8; i++) clients.push(await manager.client(`team_${i}`, 'sandboxes:write'));
    const claims = clients.flatMap((client) => Array(5).fill(client) as Client[]);
    const config = { resources: { memory: '128Mi' } };
    const answers = await Promise.all(claims.map((client) => client.post('/api/v1/sandboxes', { config })));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(8);
    expect(answers.filter(({ error }) => error?.code === 'capacity_exhausted')).toHaveLength(32);
  });
});
