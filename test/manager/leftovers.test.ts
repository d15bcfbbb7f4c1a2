import { sql } from 'kysely';
import { expect, it, vi } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { TEAM_UNDELIVERED_RECORDS } from '../../src/contract/defaults.ts';
import type { Database } from '../../src/manager/database/database.ts';
import { DatabaseClock } from '../../src/manager/database/database-clock-store.ts';
import { OutboxStore } from '../../src/manager/outbox/outbox-store.ts';
import { noticeOf, opened, SEAL } from '../support/manager/outbox.ts';
import { startManager } from '../support/manager/running-manager.ts';
import { scratchFolder } from '../support/scratch.ts';
import { describeOnStores } from '../support/stores.ts';

const SANDBOXES = '/api/v1/sandboxes';
const WEBHOOK = { url: 'http://127.0.0.1:9/', secret: 'of this test' };

/** Gives a team undelivered records, due in half an hour. */
async function backlog(database: Database, team_id: string, count: number): Promise<void> {
  const outbox = new OutboxStore(database, new DatabaseClock(database, systemClock), SEAL);
  const notice = noticeOf(Date.now(), { team_id, webhook_url: WEBHOOK.url });
  await database.db.transaction().execute((tx) => outbox.insertDeleted(tx, notice));
  const rest = sql.raw(
    'sandbox_id, team_id, event_type, endpoint, url, headers, body, state, probe_ms, deadline_ms, attempts, failures, created_at_ms',
  );
  const due_ms = Date.now() + 30 * 60_000;
  await sql`update outbox set due_ms = ${due_ms}`.execute(database.db);
  await sql`with recursive n (i) as (select 1 union all select i + 1 from n where i < ${sql.lit(count - 1)})
    insert into outbox (event_id, due_ms, ${rest}) select event_id || i, due_ms, ${rest} from outbox, n`.execute(
    database.db,
  );
}

describeOnStores('what a team leaves in the database', (fresh) => {
  it('of a sandbox that is gone holds none of its secrets', async () => {
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

  it('undelivered is bounded: above it no sandbox with a webhook is claimed or copied', async () => {
    const url = await fresh();
    const { client } = await startManager(url);
    const team = await client('team_1', 'sandboxes:write');
    const source = await team.claim({ webhook: WEBHOOK });
    const database = await opened(url);
    await backlog(database, 'team_1', TEAM_UNDELIVERED_RECORDS);
    for (const refused of [
      await team.post(SANDBOXES, { config: { webhook: WEBHOOK } }),
      await team.post(`${SANDBOXES}/${source}/fork`),
    ]) {
      expect([refused.status, refused.error?.code]).toEqual([503, 'outbox_full']);
      expect(refused.headers.get('retry-after')).toBe('30');
    }
    expect((await team.post(SANDBOXES, {})).status).toBe(201);
    const other = await client('team_2', 'sandboxes:write');
    expect((await other.post(SANDBOXES, { config: { webhook: WEBHOOK } })).status).toBe(201);
    expect((await team.call('DELETE', `${SANDBOXES}/${source}`)).status).toBe(200);
    await database.db.deleteFrom('outbox').where('id', '<', 100).execute();
    expect((await team.post(SANDBOXES, { config: { webhook: WEBHOOK } })).status).toBe(201);
  });
});

it('takes variables of at most 64 KiB', async () => {
  const { client } = await startManager(`sqlite:${scratchFolder()}/manager.db`);
  const team = await client('team_1', 'sandboxes:write');
  const most = { A: 'x'.repeat(30_000), B: 'é'.repeat(17_000) };
  const id = await team.claim({ env_vars: most });
  const more = { config: { env_vars: { ...most, C: 'x'.repeat(2_000) } } };
  for (const { status, error } of [
    await team.post(SANDBOXES, more),
    await team.call('PUT', `${SANDBOXES}/${id}`, more),
  ]) {
    expect([status, error?.details?.field]).toEqual([400, 'config.env_vars']);
  }
});
