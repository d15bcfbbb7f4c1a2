import { expect, it, vi } from 'vitest';
import { raceFeed } from '../../support/manager/feed-race.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

vi.setConfig({ testTimeout: 300_000 });

describeOnStores('the feed, while the manager that writes it is killed at random', (fresh) => {
  it('is read by three followers, none missed, none twice, each sandbox in order', async () => {
    const { kills, events, ...wrong } = await raceFeed(await fresh(), scratchFolder(), 400, 600);
    expect(wrong).toEqual({ missed: 0, twice: 0, unknown: 0, out_of_order: 0 });
    expect(events).toBeGreaterThanOrEqual(400);
    expect(kills).toBeGreaterThan(0);
  });
});
