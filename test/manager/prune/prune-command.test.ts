import { sql } from 'kysely';
import { expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../../../src/manager/database/database.ts';
import { prune } from '../../../src/manager/prune/prune-command.ts';
import { startScripted } from '../../support/manager/scripted-manager.ts';
import { describeOnStores } from '../../support/stores.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const daysAgo = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString();

describeOnStores('sandbox-manager prune', (fresh) => {
  /** A manager with windows of long ago, each `recorded` as many days ago as it says. */
  async function scene(recorded: number[]) {
    const url = await fresh();
    const { client } = await startScripted(url);
    const reader = await client('team_1', 'usage:read');
    const { db, close } = await openDatabase(url);
    onTestFinished(close);
    for (const [index, days] of recorded.entries()) {
      await db
        .insertInto('usage_windows')
        .values({
          ...{ window_id: `w${index}`, team_id: 'team_1', region_id: 'r', cluster_id: 'c', unit: 'bytes' },
          ...{
            window_type: 'sandbox.egress_bytes',
            subject_type: 'sandbox',
            subject_id: 's',
            sandbox_id: 's',
          },
          ...{ window_start_ms: 0, window_end_ms: 1, value: 1, recorded_at_ms: Date.now() - days * DAY_MS },
        })
        .execute();
    }
    const read = async (query: string) => {
      const { data } = await reader.get(`/api/v1/usage/windows?${query}`);
      const ids: string[] = data.windows.map(({ window_id }: { window_id: string }) => window_id);
      return { ids, cursor: data.next_cursor as string };
    };
    return { url, db, read };
  }

  it('removes windows that ended and were recorded before a time; cursors read on', async () => {
    const { url, read } = await scene([9, 9, 3, 0]);
    const { cursor } = await read('limit=1');
    const end = await read('limit=10');
    const given = { usageBefore: daysAgo(5) };
    expect(await prune(url, { ...given, dryRun: true })).toEqual({
      usage_windows: 2,
      tokens: null,
      teams: null,
    });
    expect((await read('limit=10')).ids).toEqual(['w0', 'w1', 'w2', 'w3']);
    expect(await prune(url, given)).toMatchObject({ usage_windows: 2 });
    expect((await read(`cursor=${cursor}`)).ids).toEqual(['w2', 'w3']);
    expect((await read('limit=10')).ids).toEqual(['w2', 'w3']);
    expect((await read(`cursor=${end.cursor}`)).ids).toEqual([]);
  });

  it('removes all pages of them', async () => {
    const { url, db } = await scene([]);
    const rows = Array.from({ length: 2_500 }, (_, i) => ({
      ...{ window_id: `w${i}`, team_id: 'team_1', region_id: 'r', cluster_id: 'c', unit: 'bytes' },
      ...{ window_type: 'sandbox.egress_bytes', subject_type: 'sandbox', subject_id: 's', sandbox_id: 's' },
      ...{ window_start_ms: 0, window_end_ms: 1, value: 1, recorded_at_ms: 0 },
    }));
    for (let at = 0; at < rows.length; at += 500) {
      await db
        .insertInto('usage_windows')
        .values(rows.slice(at, at + 500))
        .execute();
    }
    expect(await prune(url, { usageBefore: daysAgo(1) })).toMatchObject({ usage_windows: 2_500 });
  });

  it('removes tokens that were revoked before a time, and teams of which nothing else is kept', async () => {
    const { url, db } = await scene([]);
    const token = { team_id: 'team_2', scopes: '[]', is_internal: 0, created_at_ms: 0 };
    for (const [token_id, revoked_at_ms] of [
      ['old', 1],
      ['late', Date.now()],
      ['valid', null],
    ] as const) {
      await db
        .insertInto('tokens')
        .values({ ...token, token_id, token_hash: token_id, revoked_at_ms })
        .execute();
    }
    for (const team_id of ['team_2', 'team_3']) {
      await sql`insert into teams (team_id) values (${team_id}) on conflict do nothing`.execute(db);
    }
    const given = { tokensBefore: daysAgo(2), teams: true };
    expect(await prune(url, given)).toEqual({ usage_windows: null, tokens: 1, teams: 1 });
    const left = await db.selectFrom('tokens').select('token_id').where('team_id', '=', 'team_2').execute();
    expect(left.map(({ token_id }) => token_id).sort()).toEqual(['late', 'valid']);
    expect(await prune(url, given)).toMatchObject({ tokens: 0, teams: 0 });
  });

  it.each([
    [{}, 'nothing to prune'],
    [{ usageBefore: 'yesterday' }, '--usage-before yesterday must be a date'],
    [{ tokensBefore: daysAgo(0.5) }, '--tokens-before must be at least a day ago'],
  ])('refuses %j', async (given, message) => {
    const url = await fresh();
    await (await openDatabase(url)).close();
    await expect(prune(url, given)).rejects.toThrow(message);
  });
});
