import { expect, it } from 'vitest';
import { deleteUnderKills } from '../support/killed-deletions.ts';
import { scratchFolder } from '../support/scratch.ts';
import { describeOnStores } from '../support/stores.ts';

describeOnStores('a manager that is killed at random points of its deletions', (fresh) => {
  it('notifies of exactly the sandboxes that are deleted, each with one id and body', async () => {
    const run = await deleteUnderKills(await fresh(), scratchFolder(), {
      deletions: 60,
      kills_max: 8,
      life_ms: 150,
    });
    expect(run).toMatchObject({ deleted: 60, torn: [], not_delivered: [], not_one: [], left: [] });
    expect(run.kills).toBeGreaterThan(0);
  }, 180_000);
});
