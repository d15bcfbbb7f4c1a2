import { expect, it, vi } from 'vitest';
import { opened } from '../../support/manager/outbox.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { SANDBOXES } from '../../support/manager/scripted-manager.ts';
import { describeOnStores } from '../../support/stores.ts';

const WEBHOOK = { url: 'http://127.0.0.1:9/', secret: 'of this test' };

describeOnStores('a deletion', (fresh) => {
  it('leaves none of the secrets of the sandbox in the database', async () => {
    const url = await fresh();
    const { client } = await startManager(url);
    const team = await client('team_1', 'sandboxes:write');
    const id = await team.claim({ env_vars: { KEY: 'of this test' }, webhook: WEBHOOK });
    expect((await team.call('DELETE', `${SANDBOXES}/${id}`)).status).toBe(200);
    await vi.waitFor(async () => expect((await team.get(`${SANDBOXES}/${id}`)).status).toBe(404));
    const { db } = await opened(url);
    const rows = await db
      .selectFrom('sandboxes')
      .select(['env_sealed', 'webhook_secret_sealed', 'webhook_url'])
      .execute();
    expect(rows).toEqual([{ env_sealed: null, webhook_secret_sealed: '', webhook_url: WEBHOOK.url }]);
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
    expect((await team.call('DELETE', `${SANDBOXES}/${id}`)).status).toBe(200);
  });
});
