import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { TEAM_UNDELIVERED_RECORDS } from '../../src/contract/defaults.ts';
import type { Database } from '../../src/manager/database/database.ts';
import { DatabaseClock } from '../../src/manager/database/database-clock-store.ts';
import { OutboxStore } from '../../src/manager/outbox/outbox-store.ts';
import { noticeOf, opened, SEAL } from '../support/manager/outbox.ts';
import { startManager } from '../support/manager/running-manager.ts';
import { describeOnStores } from '../support/stores.ts';

const SANDBOXES = '/api/v1/sandboxes';
const WEBHOOK = { url: 'http://127.0.0.1:9/', secret: 'of this test' };

/** Gives a team undelivered records, due in half an hour; returns the store that has added them. */
async function backlog(database: Database, team_id: string, count: number): Promise<OutboxStore> {
  const clock = await DatabaseClock.open(database, systemClock);
  const outbox = new OutboxStore(database, clock, SEAL);
  const notice = noticeOf(Date.now(), { team_id, webhook_url: WEBHOOK.url });
  await database.db.transaction().execute((tx) => outbox.insertDeleted(tx, notice));
  const rest = sql.raw(
    'sandbox_id, team_id, event_type, endpoint, url, headers, body, state, probe_ms, deadline_ms, attempts, failures, created_at_ms, retry',
  );
  const due_ms = Date.now() + 30 * 60_000;
  await sql`update outbox set due_ms = ${due_ms}`.execute(database.db);
  await sql`with recursive n (i) as (select 1 union all select i + 1 from n where i < ${sql.lit(count - 1)})
    insert into outbox (event_id, due_ms, ${rest}) select event_id || i, due_ms, ${rest} from outbox, n`.execute(
    database.db,
  );
  return outbox;
}

describeOnStores('what a team leaves in the database', (fresh) => {
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
    expect((await team.call('DELETE', `${SANDBOXES}/${source}`)).status).toBe(202);
    await database.db.deleteFrom('outbox').where('id', '<', 100).execute();
    expect((await team.post(SANDBOXES, { config: { webhook: WEBHOOK } })).status).toBe(201);
  });

  it('and is no longer sent is bounded with it: what was delivered makes room first, then the oldest', async () => {
    const database = await opened(await fresh());
    const outbox = await backlog(database, 'team_1', TEAM_UNDELIVERED_RECORDS + 10);
    const first = await database.db.selectFrom('outbox').select('id').orderBy('id').executeTakeFirstOrThrow();
    const nth = (n: number) => Number(first.id) + n;
    const finished_at_ms = Date.now();
    await database.db
      .updateTable('outbox')
      .set({ due_ms: null, state: 'failed', finished_at_ms })
      .where('id', '<', nth(100))
      .execute();
    await database.db
      .updateTable('outbox')
      .set({ state: 'delivered' })
      .where('id', 'in', [nth(50), nth(60), nth(70), nth(80)])
      .execute();
    while ((await outbox.prune(3)) > 0);
    const left = await database.db.selectFrom('outbox').select(['id', 'state']).orderBy('id').execute();
    expect([left.length, Number(left[0]?.id), outbox.dropped]).toEqual([TEAM_UNDELIVERED_RECORDS, nth(6), 6]);
    expect(left.filter(({ state }) => state === 'delivered')).toEqual([]);
    await database.db.transaction().execute(async (tx) => {
      expect(await outbox.hasRoom(tx, 'team_1')).toBe(true);
    });
  });
});
