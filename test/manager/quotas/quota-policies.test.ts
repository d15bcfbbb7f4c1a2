import { expect, it, onTestFinished } from 'vitest';
import type { QuotaPolicy } from '../../../src/contract/quotas.ts';
import { quotaCommand } from '../../../src/manager/cli/quota-command.ts';
import { type Database, openDatabase } from '../../../src/manager/database/database.ts';
import { configuredQuotas } from '../../../src/manager/quotas/quota-config.ts';
import { QuotaPolicies } from '../../../src/manager/quotas/quota-policies.ts';
import { quotaStatuses } from '../../../src/manager/quotas/quota-status.ts';
import { QuotaStore } from '../../../src/manager/quotas/quota-store.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { describeOnStores } from '../../support/stores.ts';

const TEAM = 'team_1';
const LEGACY = {
  team_egress_bandwidth_bytes_per_second: 1_000,
  team_ingress_bandwidth_bytes_per_second: 2_000,
  team_bandwidth_burst_bytes: 5_000,
};
const NO_QUOTAS = {
  default_team_quotas: undefined,
  team_egress_bandwidth_bytes_per_second: undefined,
  team_ingress_bandwidth_bytes_per_second: undefined,
  team_bandwidth_burst_bytes: undefined,
};

async function opened(url: string): Promise<Database> {
  const database = await openDatabase(url);
  onTestFinished(() => database.close());
  return database;
}

describeOnStores("the region's policies", (fresh) => {
  /** A start with this config: what holds for a team without its own then, by dimension. */
  async function starter() {
    const store = new QuotaStore(await opened(await fresh()));
    return {
      store,
      async start(given: object): Promise<Record<string, number>> {
        const { listed, legacy } = configuredQuotas({ ...NO_QUOTAS, ...given });
        await store.reconcile(listed, legacy);
        const statuses = await quotaStatuses(store, TEAM);
        return Object.fromEntries(
          statuses.flatMap(({ dimension, limit_value }) =>
            limit_value === null ? [] : [[dimension, limit_value]],
          ),
        );
      },
    };
  }
  const capacity = (limit_value: number) => ({ dimension: 'active_sandboxes', limit_value });
  const rate = (dimension: string, limit_value: number) => ({
    ...{ dimension, limit_value },
    ...{ interval_ms: 1_000, burst_value: 2 * limit_value },
  });

  it('become what the config lists, at every start', async () => {
    const { start } = await starter();
    const list = [capacity(100), rate('sandbox_claims', 5)];
    expect(await start({ default_team_quotas: list })).toEqual({ active_sandboxes: 100, sandbox_claims: 5 });
    expect(await start({ default_team_quotas: [capacity(7), rate('api_requests', 9)] })).toEqual({
      active_sandboxes: 7,
      api_requests: 9,
    });
    expect(await start({ default_team_quotas: [] })).toEqual({});
    expect(await start({ default_team_quotas: list })).toEqual({ active_sandboxes: 100, sandbox_claims: 5 });
    expect(await start({})).toEqual({});
  });

  it('leave what a team has of its own', async () => {
    const { store, start } = await starter();
    const own: QuotaPolicy = {
      dimension: 'active_sandboxes',
      limit_value: 3,
      interval_ms: null,
      burst_value: null,
    };
    await store.set(TEAM, own);
    // A team may be called what the region's rows are.
    await store.set('region', { ...own, limit_value: 8 });
    expect(await start({ default_team_quotas: [capacity(100)] })).toEqual({ active_sandboxes: 3 });
    expect(await start({ default_team_quotas: [] })).toEqual({ active_sandboxes: 3 });
    await store.unset(TEAM, 'active_sandboxes');
    expect(await start({ default_team_quotas: [capacity(100)] })).toEqual({ active_sandboxes: 100 });
    expect((await quotaStatuses(store, 'region'))[0]?.limit_value).toBe(8);
  });

  it('take the legacy fields at the first start alone, and keep them until they are replaced', async () => {
    const { store, start } = await starter();
    const seeded = { network_egress_bytes: 1_000, network_ingress_bytes: 2_000 };
    expect(await start(LEGACY)).toEqual(seeded);
    expect((await quotaStatuses(store, TEAM))[3]).toMatchObject({ interval_ms: 1_000, burst_value: 5_000 });
    expect(await start({ ...LEGACY, team_egress_bandwidth_bytes_per_second: 9 })).toEqual(seeded);
    expect(await start({})).toEqual(seeded);
    expect(await start({ ...LEGACY, default_team_quotas: [rate('network_egress_bytes', 7)] })).toEqual({
      network_egress_bytes: 7,
      network_ingress_bytes: 2_000,
    });
    expect(await start({ default_team_quotas: [capacity(5)] })).toEqual({ active_sandboxes: 5 });
    expect(await start(LEGACY)).toEqual({});
  });

  it('are the same after a second start with legacy fields beside the list', async () => {
    const { start } = await starter();
    const both = { ...LEGACY, default_team_quotas: [capacity(5), rate('network_egress_bytes', 7)] };
    const expected = { active_sandboxes: 5, network_egress_bytes: 7, network_ingress_bytes: 2_000 };
    expect(await start(both)).toEqual(expected);
    expect(await start(both)).toEqual(expected);
  });

  it('do not take legacy fields once it has started without them', async () => {
    const { start } = await starter();
    expect(await start({})).toEqual({});
    expect(await start(LEGACY)).toEqual({});
  });
});

it.each([
  [
    { default_team_quotas: [{ dimension: 'api_requests', limit_value: 5, burst_value: 5 }] },
    '[0].interval_ms',
  ],
  [{ default_team_quotas: [{ dimension: 'api_requests', limit_value: 5, interval_ms: 5 }] }, 'api_requests'],
  [{ default_team_quotas: 'none' }, 'default_team_quotas must be a list'],
  [{ team_bandwidth_burst_bytes: -1 }, 'team_bandwidth_burst_bytes must be'],
  [{ team_egress_bandwidth_bytes_per_second: '5' }, 'team_egress_bandwidth_bytes_per_second must be'],
])('a config with %j is refused at %s', (given, named) => {
  expect(() => configuredQuotas({ ...NO_QUOTAS, ...given })).toThrow(named);
});

describeOnStores('the policies of a team', (fresh) => {
  it('that another replica changes are known within 5 s, those changed here at once', async () => {
    const database = await opened(await fresh());
    const store = new QuotaStore(database);
    const clock = new ManualClock();
    const [here, there] = [new QuotaPolicies(store, clock), new QuotaPolicies(store, clock)];
    const limit = async (policies: QuotaPolicies) =>
      (await policies.of(TEAM)).get('active_sandboxes')?.limit_value;
    expect([await limit(here), await limit(there)]).toEqual([undefined, undefined]);
    await store.set(TEAM, {
      dimension: 'active_sandboxes',
      limit_value: 3,
      interval_ms: null,
      burst_value: null,
    });
    here.forget(TEAM);
    expect([await limit(here), await limit(there)]).toEqual([3, undefined]);
    await clock.advance(5_000);
    expect(await limit(there)).toBe(3);
  });

  it('are not remembered as they were before a change that came while they were read', async () => {
    const database = await opened(await fresh());
    const store = new QuotaStore(database);
    const policies = new QuotaPolicies(store, new ManualClock());
    const reading = policies.of(TEAM);
    policies.forget(TEAM);
    await reading;
    await store.set(TEAM, {
      dimension: 'active_sandboxes',
      limit_value: 3,
      interval_ms: null,
      burst_value: null,
    });
    expect((await policies.of(TEAM)).get('active_sandboxes')?.limit_value).toBe(3);
  });

  it('are shown and changed on the command line, and running replicas follow', async () => {
    const url = await fresh();
    const manager = await startManager(url);
    const client = await manager.client(TEAM, 'quota:read');
    const set = await quotaCommand.set(url, TEAM, 'api_requests', {
      limitValue: '100',
      intervalMs: '1000',
      burstValue: '200',
    });
    expect(set).toMatchObject({ limit_value: 100, burst_value: 200, source: 'team_override' });
    expect((await client.get('/api/v1/quotas/api_requests')).data).toEqual(set);
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
});
