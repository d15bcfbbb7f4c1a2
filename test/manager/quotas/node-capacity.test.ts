import { expect, it, vi } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import type { Client } from '../../support/manager/manager-client.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { ScriptedRuntime } from '../../support/manager/scripted-runtime.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

const TEAM = 'team_1';

describeOnStores('the budget of the node', (fresh) => {
  it('refuses what it cannot hold', async () => {
    const budget = { node_memory: '1Gi', node_cpus: '0.5', node_sandboxes: '3', node_disk: '512Mi' };
    const options = { ...budget, team_share: '100' };
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
    const options = { node_memory: '16Gi', node_disk: '100Gi', team_share: '100' };
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
    const manager = await startManager(await fresh(), {
      options: { node_memory: '768Mi', team_share: '100' },
    });
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
    const manager = await startManager(await fresh(), {
      options: { node_memory: '512Mi', team_share: '100' },
      runtime,
    });
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

describeOnStores('the shares of teams', (fresh) => {
  const SMALL = { memory: '128Mi', disk: '128Mi' };
  const refusal = (resource: string) => ({
    status: 503,
    error: { code: 'capacity_exhausted', details: { resource, team_share: true } },
  });
  const claim = (client: Client, resources: object = SMALL) =>
    client.post('/api/v1/sandboxes', { config: { resources } });
  const verb = (client: Client, sandbox_id: string, name: 'fork' | 'pause' | 'resume') =>
    client.post(`/api/v1/sandboxes/${sandbox_id}/${name}`);

  async function twoTeams(options: object) {
    const file = { default_team_quotas: [{ dimension: 'active_sandboxes', limit_value: 1 }] };
    const manager = await startManager(await fresh(), { options: { ...options }, file });
    return {
      one: await manager.client('team_1', 'sandboxes:write'),
      two: await manager.client('team_2', 'sandboxes:write', 'quota:read'),
    };
  }

  it("leave another team its disk, however many forks a team makes, and charge no fork to a quota's dimension", async () => {
    const { one, two } = await twoTeams({ node_memory: '8Gi', node_disk: '2Gi' });
    const source = await one.claim({ resources: SMALL });
    // 16 have room on the node, and a share is 4 of them.
    for (let i = 1; i < 12; i++) expect((await verb(one, source, 'fork')).status).toBe(201);
    expect(await verb(one, source, 'fork')).toMatchObject({
      ...refusal('disk'),
      error: {
        message: expect.stringMatching(
          /^The team's share of the node \(25 %\) .* 128Mi are needed, 0Mi are free/,
        ),
        details: { requested: '128Mi', available: '0Mi' },
      },
    });
    const theirs = await two.claim({ resources: SMALL });
    expect((await verb(two, theirs, 'fork')).status).toBe(201);
    expect((await two.get('/api/v1/quotas/active_sandboxes')).data.current).toBe(1);
    // Two of the share of 512 MiB are left, whatever is asked for at once.
    expect((await verb(two, theirs, 'pause')).status).toBe(200);
    expect(await claim(two, { memory: '128Mi', disk: '257Mi' })).toMatchObject({
      ...refusal('disk'),
      error: { details: { available: '256Mi' }, message: expect.stringContaining('resources.disk') },
    });
    expect((await claim(two, { memory: '128Mi', disk: '256Mi' })).status).toBe(201);
  });

  it('bind while another team holds something, take nothing away, and end with it', async () => {
    const { one, two } = await twoTeams({ node_memory: '8Gi', node_disk: '1Gi' });
    const first = await one.claim({ resources: SMALL });
    for (let i = 1; i < 4; i++) await verb(one, first, 'fork');
    const theirs = await two.claim({ resources: SMALL });
    expect(await verb(one, first, 'fork')).toMatchObject(refusal('disk'));
    // What is held may still be paused, resumed and changed.
    expect((await verb(one, first, 'pause')).status).toBe(200);
    expect((await verb(one, first, 'resume')).status).toBe(200);
    const larger = { config: { resources: { memory: '256Mi' } } };
    expect((await one.call('PUT', `/api/v1/sandboxes/${first}`, larger)).status).toBe(200);
    expect((await two.call('DELETE', `/api/v1/sandboxes/${theirs}`)).status).toBe(202);
    await vi.waitFor(async () => expect((await verb(one, first, 'fork')).status).toBe(201));
  });

  it('leave another team the memory for its paused sandboxes, and refuse no pause', async () => {
    const { one, two } = await twoTeams({ node_memory: '2Gi', node_disk: '100Gi' });
    const theirs = await two.claim({ resources: SMALL });
    const ours = await one.claim({ resources: SMALL });
    expect((await verb(two, theirs, 'pause')).status).toBe(200);
    // 16 of 128 MiB have room on the node, and a share is 4 of them.
    for (let i = 0; i < 4; i++) expect((await verb(one, ours, 'fork')).status).toBe(201);
    expect(await verb(one, ours, 'fork')).toMatchObject(refusal('memory'));
    expect((await verb(one, ours, 'pause')).status).toBe(200);
    // By now more than its share is paused: what would be paused next is not begun.
    expect(await claim(one)).toMatchObject(refusal('memory'));
    for (let i = 1; i < 4; i++) expect((await verb(two, theirs, 'fork')).status).toBe(201);
    expect((await verb(one, ours, 'resume')).status).toBe(200);
    expect((await verb(two, theirs, 'resume')).status).toBe(200);
  });

  it('keep a share of the memory free of the forks and pauses of a team that is alone', async () => {
    const { one, two } = await twoTeams({ node_memory: '1Gi', node_disk: '100Gi' });
    let ours = await one.claim({ resources: SMALL });
    for (let i = 1; i < 6; i++) {
      await verb(one, ours, 'pause');
      ours = await one.claim({ resources: SMALL });
    }
    await verb(one, ours, 'pause');
    expect(await claim(one)).toMatchObject(refusal('memory'));
    expect(await verb(one, ours, 'fork')).toMatchObject(refusal('memory'));
    const theirs = await two.claim({ resources: SMALL });
    expect((await verb(two, theirs, 'fork')).status).toBe(201);
  });

  it('are exact for claims at once: of eight as many are admitted as the share has room for', async () => {
    const options = { node_memory: '64Gi', node_disk: '2Gi' };
    const manager = await startManager(await fresh(), { options });
    const one = await manager.client('team_1', 'sandboxes:write');
    const two = await manager.client('team_2', 'sandboxes:write');
    await one.claim({ resources: SMALL });
    const answers = await Promise.all(Array.from({ length: 8 }, () => claim(two)));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(4);
    const refused = answers.filter(({ status }) => status !== 201);
    for (const answer of refused) expect(answer).toMatchObject(refusal('disk'));
  });
});
