import { expect, it } from 'vitest';
import { startManager } from '../../support/manager/running-manager.ts';
import { describeOnStores } from '../../support/stores.ts';

const SMALL = { resources: { memory: '128Mi', cpu: 0.5, disk: '256Mi' } };
const NONE = { memory_mib: 0, cpu_millis: 0, sandboxes: 0, disk_mib: 0, paused: 0, paused_memory_mib: 0 };

describeOnStores('GET /node', (fresh) => {
  it('shows operators the budget, what is taken of it, and the teams, the largest disk first', async () => {
    const options = { node_memory: '2Gi', node_cpus: '4', node_disk: '4Gi' };
    const manager = await startManager(await fresh(), { options });
    const admin = await manager.client('operators', 'admin');
    const one = await manager.client('team_1', 'sandboxes:write');
    const two = await manager.client('team_2', 'sandboxes:write');
    await one.claim(SMALL);
    const source = await two.claim(SMALL);
    await two.post(`/api/v1/sandboxes/${source}/fork`);
    const running = { memory_mib: 128, cpu_millis: 500, sandboxes: 1 };
    const first = {
      ...{ team_id: 'team_2', ...running, memory_mib: 256, disk_mib: 512 },
      ...{ paused: 1, paused_memory_mib: 128 },
    };
    const second = { team_id: 'team_1', ...running, disk_mib: 256, paused: 0, paused_memory_mib: 0 };
    const node = {
      budget: {
        memory_mib: 2048,
        cpu_millis: 4000,
        sandboxes: null,
        disk_mib: 4096,
      },
      use: {
        ...{ memory_mib: 384, cpu_millis: 1000, sandboxes: 2, disk_mib: 768 },
        ...{ paused: 1, paused_memory_mib: 128 },
      },
      unrecorded: NONE,
      team_share: 25,
      share: { disk_mib: 1024, paused_memory_mib: 512 },
    };
    const answer = await admin.get('/api/v1/node');
    expect([answer.status, answer.data]).toEqual([200, { ...node, teams: [first, second], has_more: false }]);
    const page = (query: string) => admin.get(`/api/v1/node?${query}`);
    expect((await page('limit=1')).data).toEqual({ ...node, teams: [first], has_more: true });
    expect((await page('limit=1&offset=1')).data).toEqual({ ...node, teams: [second], has_more: false });
    expect((await one.get('/api/v1/node')).status).toBe(403);
  });

  it('says where there is no budget, and so no share', async () => {
    const manager = await startManager(await fresh());
    const { data } = await (await manager.client('operators', 'admin')).get('/api/v1/node');
    expect(data).toEqual({
      budget: {
        memory_mib: null,
        cpu_millis: null,
        sandboxes: null,
        disk_mib: null,
      },
      ...{ use: NONE, unrecorded: NONE, team_share: 25, teams: [], has_more: false },
      share: { disk_mib: null, paused_memory_mib: null },
    });
  });
});
