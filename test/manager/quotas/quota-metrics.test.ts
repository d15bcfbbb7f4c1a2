import { expect, it } from 'vitest';
import { startManager } from '../../support/manager/running-manager.ts';
import { describeOnStores } from '../../support/stores.ts';

const TEAM = 'team_1';
const RATE = { limit_value: 2, interval_ms: 60_000, burst_value: 3 };
const pathOf = (dimension: string, team_id = TEAM) => `/internal/v1/teams/${team_id}/quotas/${dimension}`;

describeOnStores('decisions on quotas', (fresh) => {
  it('are in the metrics, with the windows that were closed', async () => {
    const manager = await startManager(await fresh(), { options: { node_sandboxes: '1' } });
    const admin = await manager.client(TEAM, 'admin');
    const client = await manager.client(TEAM, 'sandboxes:write');
    await admin.call('PUT', pathOf('sandbox_claims'), { ...RATE, burst_value: 2 });
    await admin.call('PUT', pathOf('active_sandboxes'), { limit_value: 5 });
    const sandbox_id = await client.claim();
    expect((await client.post('/api/v1/sandboxes')).status).toBe(503);
    expect((await client.post('/api/v1/sandboxes')).status).toBe(429);
    await client.call('DELETE', `/api/v1/sandboxes/${sandbox_id}`);
    const text = await (await fetch(`${manager.manager.url}/metrics`)).text();
    const decisions = (dimension: string, outcome: string) =>
      new RegExp(
        `^sandbox_manager_quota_decisions_total\\{dimension="${dimension}",outcome="${outcome}"\\} (\\d+)$`,
        'm',
      ).exec(text)?.[1];
    expect(decisions('sandbox_claims', 'admitted')).toBe('2');
    expect(decisions('sandbox_claims', 'refused')).toBe('1');
    expect(decisions('active_sandboxes', 'admitted')).toBe('2');
    expect(decisions('node', 'admitted')).toBe('1');
    expect(decisions('node', 'refused')).toBe('1');
    expect(text).toMatch(/^sandbox_manager_quota_draw_duration_seconds_count 3$/m);
    expect(text).toMatch(/^sandbox_manager_quota_rate_authority_up 1$/m);
    expect(text).toMatch(
      /^sandbox_manager_usage_windows_total\{window_type="sandbox.runtime_mib_milliseconds"\} 1$/m,
    );
  });
});
