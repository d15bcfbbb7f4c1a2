import { expect, it, vi } from 'vitest';
import { claimsAtOnce } from '../../support/manager/claim-race.ts';
import type { Client } from '../../support/manager/manager-client.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

vi.setConfig({ testTimeout: 240_000 });

const TEAM = 'team_1';
const CLAIMS = 200;
/** The bench does 50. */
const ROUNDS = 4;

describeOnStores('admission of sandboxes', (fresh) => {
  it('admits exactly one of 200 claims at once where one place is left, also with two replicas', async () => {
    const url = await fresh();
    const folder = scratchFolder();
    const clients: Client[] = [];
    // Two processes on SQLite wait for each other without letting anything else run: not in one process.
    const replicas = url.startsWith('sqlite:') ? 1 : 2;
    const file = { default_team_quotas: [{ dimension: 'active_sandboxes', limit_value: 3 }] };
    for (let i = 0; i < replicas; i++) {
      const manager = await startManager(url, { folder, file });
      clients.push(await manager.client(TEAM, 'sandboxes:write', 'quota:read'));
    }
    await clients[0]?.claim();
    await clients[0]?.claim();
    for (let round = 0; round < ROUNDS; round++) {
      const result = await claimsAtOnce(clients, CLAIMS);
      expect(result).toEqual({ admitted: 1, refused: CLAIMS - 1, other: [], active: 3 });
    }
  });

  it('admits exactly so many resumes and claims together as there are places', async () => {
    const manager = await startManager(await fresh());
    const client = await manager.client(TEAM, 'sandboxes:write', 'quota:read', 'admin');
    const paused = [];
    for (let i = 0; i < 10; i++) {
      const sandbox_id = await client.claim();
      await client.post(`/api/v1/sandboxes/${sandbox_id}/pause`);
      paused.push(sandbox_id);
    }
    await client.call('PUT', `/internal/v1/teams/${TEAM}/quotas/active_sandboxes`, { limit_value: 7 });
    const answers = await Promise.all([
      ...paused.map((sandbox_id) => client.post(`/api/v1/sandboxes/${sandbox_id}/resume`)),
      ...paused.map(() => client.post('/api/v1/sandboxes')),
    ]);
    expect(answers.filter(({ status }) => status < 300)).toHaveLength(7);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(13);
    expect((await client.get('/api/v1/quotas/active_sandboxes')).data.current).toBe(7);
  });

  it('keeps to the memory of the node, whichever team claims', async () => {
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
