import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { UsageWindow } from '../../src/contract/usage.ts';
import { until } from '../faults/support/until.ts';
import { ManagerProgram, runManagerCommand } from '../support/manager-program.ts';
import { scratchFolder } from '../support/scratch.ts';
import { describeOnStores } from '../support/stores.ts';

const LIMIT = 20;
const CLAIMS = 60;
const SCOPES = ['sandboxes:write', 'quota:read', 'usage:read'];

/** A manager as a program that can be killed, with a limit on active sandboxes from its config file. */
async function killable(url: string) {
  const folder = scratchFolder();
  const config = join(folder, 'config.yaml');
  const quotas = `default_team_quotas:\n  - dimension: active_sandboxes\n    limit_value: ${LIMIT}\n`;
  writeFileSync(config, `database: ${url}\nruntime: none\nlisten: 127.0.0.1:0\n${quotas}`);
  const options = ['--config', config, '--secret-key-file', join(folder, 'key')];
  const scopes = SCOPES.flatMap((scope) => ['--scope', scope]);
  const token = await runManagerCommand('token', 'create', '--team', 'team_1', ...scopes, '--config', config);
  const manager = { program: await ManagerProgram.start(options) };
  return {
    config,
    // biome-ignore lint/suspicious/noExplicitAny: whatever is answered.
    async call(method: string, path: string): Promise<{ status: number; data: any }> {
      const headers = { authorization: `Bearer ${token}` };
      const response = await fetch(`${manager.program.url}/api/v1${path}`, { method, headers });
      // biome-ignore lint/suspicious/noExplicitAny: whatever is answered.
      return { status: response.status, data: ((await response.json()) as any).data };
    },
    async killAndStart() {
      await manager.program.end('SIGKILL');
      manager.program = await ManagerProgram.start(options);
    },
    end: () => manager.program.end('SIGTERM'),
  };
}

describeOnStores('quotas and usage of a manager that is killed', (fresh) => {
  it('never admits more than the limit, and all of it in the end', async () => {
    const { call, killAndStart, end } = await killable(await fresh());
    const admitted = new Set<string>();
    const claims = Array.from({ length: CLAIMS }, async () => {
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

  it('counts what runs over its deaths once, without gaps', async () => {
    const { call, killAndStart, end } = await killable(await fresh());
    const { sandbox_id } = (await call('POST', '/sandboxes')).data;
    const { claimed_at } = (await call('GET', `/sandboxes/${sandbox_id}`)).data;
    for (let i = 0; i < 3; i++) {
      await sleep(100);
      await killAndStart();
    }
    expect((await call('DELETE', `/sandboxes/${sandbox_id}`)).status).toBe(200);
    await killAndStart();
    const { windows } = (await call('GET', '/usage/windows')).data as { windows: UsageWindow[] };
    let at = claimed_at;
    for (const { window_start, window_end, value } of windows) {
      expect(window_start).toBe(at);
      expect(value).toBe(512 * (Date.parse(window_end) - Date.parse(window_start)));
      at = window_end;
    }
    expect(Date.parse(at) - Date.parse(claimed_at)).toBeGreaterThan(300);
    await end();
  }, 120_000);

  it('follows what an operator sets on the command line', async () => {
    const { call, config, end } = await killable(await fresh());
    const quota = (...args: string[]) =>
      runManagerCommand('quota', ...args, '--team', 'team_1', '--config', config);
    const set = await quota(
      'set',
      'api_requests',
      '--limit-value',
      '5',
      '--interval-ms',
      '1000',
      '--burst-value',
      '9',
    );
    expect(set).toBe('api_requests  5  every 1000 ms, at most 9 at once  team_override');
    expect((await quota('list')).split('\n').slice(0, 2)).toEqual([
      `active_sandboxes  ${LIMIT}  0 in use  region_default`,
      'sandbox_claims  unlimited',
    ]);
    expect((await call('GET', '/quotas/api_requests')).data.burst_value).toBe(9);
    expect(JSON.parse(await quota('unset', 'api_requests', '--json')).quotas).toMatchObject([
      { unlimited: true },
    ]);
    await expect(quota('set', 'api_requests', '--limit-value', '5')).rejects.toMatchObject({
      code: 2,
      stderr: 'sandbox-manager: --interval-ms is required\n',
    });
    await end();
  }, 120_000);
});
