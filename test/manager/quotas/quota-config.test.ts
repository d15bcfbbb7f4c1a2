import { expect, it, onTestFinished } from 'vitest';
import type { QuotaPolicy } from '../../../src/contract/quotas.ts';
import { type Database, openDatabase } from '../../../src/manager/database/database.ts';
import { configuredQuotas } from '../../../src/manager/quotas/quota-config.ts';
import { quotaStatuses } from '../../../src/manager/quotas/quota-status.ts';
import { QuotaStore } from '../../../src/manager/quotas/quota-store.ts';
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

  it("do not change a team's own", async () => {
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

  it('take the legacy fields at the first start only, and keep them until they are replaced', async () => {
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

  it('ignore legacy fields once a start had none', async () => {
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
