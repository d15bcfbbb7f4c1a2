import { expect, it } from 'vitest';
import { quotaCommand } from '../../src/manager/quota-command.ts';
import { killable, LIMIT } from '../support/manager/killable-manager.ts';
import { startManager } from '../support/manager/running-manager.ts';
import { runManagerCommand } from '../support/manager-program.ts';
import { describeOnStores } from '../support/stores.ts';

const TEAM = 'team_1';

describeOnStores('the quota command', (fresh) => {
  it('shows and changes the policies of a team, and running replicas follow', async () => {
    const url = await fresh();
    const manager = await startManager(url);
    const client = await manager.client(TEAM, 'quota:read');
    const set = await quotaCommand.set(url, TEAM, 'api_requests', {
      limitValue: '100',
      intervalMs: '1000',
      burstValue: '200',
    });
    expect(set).toMatchObject({ limit_value: 100, burst_value: 200, source: 'team_override' });
    expect((await client.get('/api/v1/quotas/api_requests')).data).toEqual({ ...set, enforced: true });
    expect((await quotaCommand.list(url, TEAM)).map(({ source }) => source)).toEqual([
      ...['unlimited', 'unlimited', 'team_override', 'unlimited', 'unlimited'],
    ]);
    expect((await quotaCommand.unset(url, TEAM, 'api_requests')).unlimited).toBe(true);
    const bad: [Parameters<typeof quotaCommand.set>, string][] = [
      [[url, TEAM, 'cpu', { limitValue: '1' }], 'cpu'],
      [[url, TEAM, 'api_requests', { limitValue: '1', intervalMs: '5' }], '--burst-value'],
      [[url, TEAM, 'active_sandboxes', {}], '--limit-value'],
      [[url, TEAM, 'active_sandboxes', { limitValue: '-1' }], '--limit-value'],
      [[url, TEAM, 'active_sandboxes', { limitValue: '1e3' }], '--limit-value'],
      [[url, 'a b', 'active_sandboxes', { limitValue: '1' }], '--team'],
    ];
    for (const [args, named] of bad) await expect(quotaCommand.set(...args)).rejects.toThrow(named);
  });

  it('prints what it sets and lists, and the manager follows', async () => {
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
      exitCode: 2,
      stderr: 'sandbox-manager: --interval-ms is required\n',
    });
    await end();
  }, 120_000);
});
