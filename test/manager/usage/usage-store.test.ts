import { expect, it, vi } from 'vitest';
import { race } from '../../support/manager/cursor-race.ts';
import { describeOnStores } from '../../support/stores.ts';

vi.setConfig({ testTimeout: 120_000 });

describeOnStores('usage windows', (fresh) => {
  it('are read once each, none missed, none twice, while eight replicas write', async () => {
    const result = await race(await fresh(), 8, 1_000);
    expect(result).toMatchObject({ read: 8_000, missed: 0, repeated: 0 });
    expect(result.pages_meanwhile).toBeGreaterThan(10);
  });
});
