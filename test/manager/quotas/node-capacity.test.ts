import { expect, it } from 'vitest';
import type { Client } from '../../support/manager/manager-client.ts';
import { startManager } from '../../support/manager/running-manager.ts';
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

  it('refuses a fork where the daemons of paused sandboxes take its memory, and never a pause', async () => {
    const manager = await startManager(await fresh(), { options: { node_memory: '256Mi' } });
    const client = await manager.client(TEAM, 'sandboxes:write');
    const first = await client.claim({ resources: { memory: '128Mi' } });
    const fork = () => client.post(`/api/v1/sandboxes/${first}/fork`);
    for (let i = 0; i < 3; i++) expect((await fork()).status).toBe(201);
    expect((await client.post(`/api/v1/sandboxes/${first}/pause`)).status).toBe(200);
    const second = await client.claim({ resources: { memory: '128Mi' } });
    expect(await fork()).toMatchObject({
      status: 503,
      error: { code: 'capacity_exhausted', details: { resource: 'memory' } },
    });
    expect((await client.post(`/api/v1/sandboxes/${second}/pause`)).status).toBe(200);
    expect((await client.post(`/api/v1/sandboxes/${first}/resume`)).status).toBe(200);
    expect((await client.post(`/api/v1/sandboxes/${second}/resume`)).status).toBe(200);
    expect((await fork()).status).toBe(201);
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
