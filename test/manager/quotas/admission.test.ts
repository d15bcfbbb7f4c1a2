import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { until } from '../../faults/support/until.ts';
import { claimsAtOnce } from '../../support/manager/claim-race.ts';
import { killable, LIMIT } from '../../support/manager/killable-manager.ts';
import type { Client } from '../../support/manager/manager-client.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

vi.setConfig({ testTimeout: 240_000 });

const TEAM = 'team_1';
const pathOf = (dimension: string, team_id = TEAM) => `/internal/v1/teams/${team_id}/quotas/${dimension}`;
const CLAIMS = 200;
/** Claims beside a manager that is killed. */
const KILLED_CLAIMS = 60;
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
      const manager = await startManager(url, { folder, file, replicas });
      clients.push(await manager.client(TEAM, 'sandboxes:write', 'quota:read'));
    }
    await clients[0]?.claim();
    await clients[0]?.claim();
    for (let round = 0; round < ROUNDS; round++) {
      const result = await claimsAtOnce(clients, CLAIMS);
      expect(result).toEqual({ admitted: 1, refused: CLAIMS - 1, other: [], active: 3 });
    }
  });

  it('admits exactly as many resumes and claims together as the limit allows', async () => {
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

  it('checks active_sandboxes at a resume too, and frees it at a pause or deletion', async () => {
    const manager = await startManager(await fresh());
    const admin = await manager.client(TEAM, 'admin');
    const client = await manager.client(TEAM, 'sandboxes:write', 'quota:read');
    await admin.call('PUT', pathOf('active_sandboxes'), { limit_value: 1 });
    const first = await client.claim();
    const { status, headers } = await client.post('/api/v1/sandboxes');
    expect([status, headers.get('retry-after')]).toEqual([429, null]);
    expect([headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')]).toEqual(['1', '0']);
    await client.post(`/api/v1/sandboxes/${first}/pause`);
    const second = await client.claim();
    expect(await client.post(`/api/v1/sandboxes/${first}/resume`)).toMatchObject({
      status: 429,
      error: {
        message: expect.stringContaining('1 needed, 0 left. Paused and deleted sandboxes do not count.'),
        details: { dimension: 'active_sandboxes', limit: 1, current: 1, requested: 1 },
      },
    });
    expect((await client.call('DELETE', `/api/v1/sandboxes/${second}`)).status).toBe(202);
    expect((await client.post(`/api/v1/sandboxes/${first}/resume`)).status).toBe(200);
    expect((await client.get('/api/v1/quotas/active_sandboxes')).data).toMatchObject({
      current: 1,
      remaining: 0,
    });
  });

  it('never admits more than the limit, and the whole limit in the end', async () => {
    const { call, killAndStart, end } = await killable(await fresh());
    const admitted = new Set<string>();
    const claims = Array.from({ length: KILLED_CLAIMS }, async () => {
      const answer = await call('POST', '/sandboxes').catch(() => null);
      if (answer?.status === 201) admitted.add(answer.data.sandbox_id);
    });
    await sleep(Math.random() * 60);
    await killAndStart();
    await Promise.all(claims);
    // What nobody was told of is undone; what was told is there.
    const settled = async () => {
      const { data } = await call('GET', '/sandboxes?limit=200');
      return data.sandboxes.every(({ status }: { status: string }) => status === 'running') && data;
    };
    const { sandboxes, count } = await until('the claims are settled', settled);
    expect(count).toBeLessThanOrEqual(LIMIT);
    const ids = sandboxes.map(({ id }: { id: string }) => id);
    expect(ids).toEqual(expect.arrayContaining([...admitted]));
    const statuses: number[] = [];
    for (let i = count; i <= LIMIT; i++) statuses.push((await call('POST', '/sandboxes')).status);
    expect(statuses).toEqual([...Array(LIMIT - count).fill(201), 429]);
    expect((await call('GET', '/quotas/active_sandboxes')).data).toMatchObject({
      current: LIMIT,
      remaining: 0,
    });
    await end();
  }, 120_000);
});
