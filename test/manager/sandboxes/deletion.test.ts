import { expect, it } from 'vitest';
import { timestamp } from '../../../src/base/clock.ts';
import { purgeJob } from '../../../src/manager/sandboxes/housekeeping.ts';
import { sandboxView } from '../../../src/manager/sandboxes/sandbox-view.ts';
import { eventually } from '../../support/eventually.ts';
import { opened, SEAL } from '../../support/manager/outbox.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { SANDBOXES, statusOf } from '../../support/manager/scripted-manager.ts';
import { scriptedParts } from '../../support/manager/scripted-parts.ts';
import { describeOnStores } from '../../support/stores.ts';

const LATER = { timeout: 60_000, interval: 10 };
const WEBHOOK = { url: 'http://127.0.0.1:9/', secret: 'of this test' };

describeOnStores('a deletion', (fresh) => {
  it('leaves none of the secrets of the sandbox in the database', async () => {
    const url = await fresh();
    const { client } = await startManager(url);
    const team = await client('team_1', 'sandboxes:write');
    const id = await team.claim({ env_vars: { KEY: 'of this test' }, webhook: WEBHOOK });
    expect((await team.call('DELETE', `${SANDBOXES}/${id}`)).status).toBe(202);
    await eventually(async () => expect(await statusOf(team, id)).toBe('deleted'));
    const { db } = await opened(url);
    const rows = await db
      .selectFrom('sandboxes')
      .select(['env_sealed', 'env_names_sealed', 'webhook_secret_sealed', 'webhook_url'])
      .execute();
    const cleared = { env_sealed: null, env_names_sealed: null, webhook_secret_sealed: '' };
    expect(rows).toEqual([{ ...cleared, webhook_url: WEBHOOK.url }]);
  });

  it.each([
    [['sandbox.deleted'], 1],
    [['agent.event', 'sandbox.killed'], 0],
    [undefined, 1],
  ] as const)('of a webhook that is sent %j queues %d sandbox.deleted', async (events, queued) => {
    const { claim, deletions, database } = await scriptedParts(await fresh());
    const { sandbox_id } = await claim({
      config: { webhook: { ...WEBHOOK, ...(events ? { events: [...events] } : {}) } },
    });
    await deletions.delete(sandbox_id, 'team_1', { reason: 'api', actor: null });
    const rows = await database.db.selectFrom('outbox').select('event_type').execute();
    expect(rows).toEqual(Array(queued).fill({ event_type: 'sandbox.deleted' }));
  });

  it('deletes a sandbox that leases more memory than can be metered', async () => {
    const url = await fresh();
    const { client } = await startManager(url);
    const team = await client('team_1', 'sandboxes:write');
    const config = { resources: { memory: '999999999Ti' } };
    const refused = await team.post(SANDBOXES, { config });
    expect([refused.status, refused.error?.details?.field]).toEqual([400, 'config.resources.memory']);
    const id = await team.claim();
    // As a claim of before was taken, an hour ago.
    const { db } = await opened(url);
    const memory_mib = 999_999_999 * 1024 * 1024;
    const at_ms = Date.now() - 3_600_000;
    await db.updateTable('sandboxes').set({ memory_mib }).execute();
    await db.updateTable('leases').set({ memory_mib, counted_until_ms: at_ms }).execute();
    expect((await team.call('DELETE', `${SANDBOXES}/${id}`)).status).toBe(202);
  });
});

describeOnStores('a deleted sandbox', (fresh) => {
  it('can be read for 24 h and no longer, by its own team and by nothing but GET', async () => {
    const { claim, deletions, sandboxes, services, housekeeping, keys, clock } = await scriptedParts(
      await fresh(),
    );
    const named = await claim({ config: { webhook: WEBHOOK, env_vars: { A: '1' }, ttl: 600 } });
    const before = sandboxView(await sandboxes.get(named), SEAL);
    await deletions.delete(named.sandbox_id, 'team_1', { reason: 'api', actor: null });
    await eventually(async () => {
      await clock.advance(0);
      expect((await sandboxes.getKept(named)).deleted_at_ms).not.toBeNull();
    }, LATER);
    const kept = await sandboxes.getKept(named);
    expect(sandboxView(kept, SEAL)).toEqual({
      ...before,
      status: 'deleted',
      env_names: [],
      updated_at: expect.any(String),
    });
    const not_found = { code: 'not_found' };
    await expect(sandboxes.getKept({ ...named, team_id: 'team_2' })).rejects.toMatchObject(not_found);
    await expect(sandboxes.get(named)).rejects.toMatchObject({
      ...not_found,
      details: { deleted_at: timestamp(kept.deleted_at_ms as number) },
    });
    await expect(sandboxes.resume(named, null)).rejects.toMatchObject(not_found);
    await expect(sandboxes.refresh(named, 1)).rejects.toMatchObject(not_found);
    const again = deletions.delete(named.sandbox_id, 'team_1', { reason: 'api', actor: null });
    await expect(again).rejects.toMatchObject(not_found);
    expect(await services.store.list('team_1', { limit: 10, offset: 0 })).toMatchObject({ count: 0 });
    const purge = purgeJob(services, housekeeping, keys);
    await clock.advance(24 * 3_600_000);
    await purge.run();
    expect(await sandboxes.getKept(named)).toEqual(kept);
    await clock.advance(1);
    await purge.run();
    await expect(sandboxes.getKept(named)).rejects.toMatchObject(not_found);
  });
});
