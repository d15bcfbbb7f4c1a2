import { statSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import { expect, it, onTestFinished } from 'vitest';
import { StartError } from '../../../src/contract/errors.ts';
import { type Database, openDatabase } from '../../../src/manager/database/database.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

async function opened(url: string): Promise<Database> {
  const database = await openDatabase(url);
  onTestFinished(() => database.close());
  return database;
}

describeOnStores('the database', (fresh) => {
  it('has every table, also where two replicas start at once, and keeps what is there', async () => {
    const url = await fresh();
    // On SQLite the second waits for the first's transaction without letting anything else run: not in one process.
    const one = url.startsWith('sqlite:') ? await opened(url) : opened(url);
    const [first, two] = await Promise.all([one, opened(url)]);
    await first.db.insertInto('teams').values({ team_id: 'team_1' }).execute();
    await (await opened(url)).db.selectFrom('usage_windows').selectAll().execute();
    expect(await two.db.selectFrom('teams').selectAll().execute()).toEqual([{ team_id: 'team_1' }]);
  });

  it.each([
    ['a newer version has migrated it', '999_of_tomorrow', 'a newer sandbox-manager has migrated it'],
    ['an earlier build has made it', '001_of_before', 'an earlier build of sandbox-manager, which was never'],
  ])('is refused by name where %s, and left as it is', async (_, name, refusal) => {
    const url = await fresh();
    const { db } = await opened(url);
    const applied = sql`select name from kysely_migration order by name`;
    if (name < '021') await sql`delete from kysely_migration`.execute(db);
    await sql`insert into kysely_migration (name, timestamp) values (${name}, 'tomorrow')`.execute(db);
    const { rows } = await applied.execute(db);
    const error = await openDatabase(url).catch((reason: Error) => reason);
    expect(error).toBeInstanceOf(StartError);
    expect((error as Error).message).toContain(`--database cannot be used: ${refusal}`);
    expect((error as Error).message).toContain(`(${name})`);
    expect((await applied.execute(db)).rows).toEqual(rows);
  });

  it('gives whole numbers as numbers', async () => {
    const { db } = await opened(await fresh());
    const limit_value = Number.MAX_SAFE_INTEGER;
    const policy = { scope: 'region', team_id: '', dimension: 'x', source: 'config' } as const;
    await db
      .insertInto('quota_policies')
      .values({ ...policy, limit_value, interval_ms: null, burst_value: null })
      .execute();
    const row = await db
      .selectFrom('quota_policies')
      .select(['limit_value', ({ fn }) => fn.countAll<number>().over().as('count')])
      .executeTakeFirst();
    expect(row).toEqual({ limit_value, count: 1 });
  });

  it('takes a transaction back that fails', async () => {
    const { db } = await opened(await fresh());
    const failing = db.transaction().execute(async (tx) => {
      await tx.insertInto('teams').values({ team_id: 'team_1' }).execute();
      throw new Error('on purpose');
    });
    await expect(failing).rejects.toThrow('on purpose');
    expect(await db.selectFrom('teams').selectAll().execute()).toEqual([]);
  });
});

it('refuses a database that cannot be opened, in one line', async () => {
  await expect(openDatabase('sqlite:/nowhere/at/all.db')).rejects.toThrow(/^--database .*cannot be opened/);
  await expect(openDatabase('postgres://127.0.0.1:1/x')).rejects.toThrow(/^--database cannot be used: /);
});

it("makes SQLite's file readable to its owner alone", async () => {
  const path = join(scratchFolder(), 'manager.db');
  await opened(`sqlite:${path}`);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});
