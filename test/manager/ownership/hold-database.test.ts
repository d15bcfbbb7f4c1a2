import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { holdDatabase } from '../../../src/manager/ownership/hold-database.ts';
import { tokenCommand } from '../../../src/manager/token-command.ts';
import { eventually } from '../../support/eventually.ts';
import { SILENT } from '../../support/manager/outbox.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { type PostgresServer, postgresPrograms, startPostgres } from '../../support/postgres.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

async function held(url: string, is_alone = true) {
  const hold = await holdDatabase({ url, is_alone, clock: systemClock, log: SILENT });
  onTestFinished(() => hold.release());
  return hold;
}

describeOnStores('a manager alone on its database', (fresh) => {
  it('is the only one, until it ends; commands work beside it', async () => {
    const url = await fresh();
    const folder = scratchFolder();
    const first = await startManager(url, { folder });
    const refused = startManager(url, { folder });
    await expect(refused).rejects.toMatchObject({
      exit_code: 2,
      message: expect.stringContaining('held by another sandbox-manager'),
    });
    const made = { team: 'team_1', scopes: ['sandboxes:read'], internal: false };
    expect(await tokenCommand.create(url, made)).not.toBe('');
    await first.stop();
    await (await startManager(url, { folder })).stop();
  });
});

it('a link to the file of a database leads to the same hold', async () => {
  const folder = scratchFolder();
  const url = `sqlite:${join(folder, 'manager.db')}`;
  await (await startManager(url)).stop();
  symlinkSync(join(folder, 'manager.db'), join(folder, 'link.db'));
  await held(url);
  await expect(held(`sqlite:${join(folder, 'link.db')}`)).rejects.toThrow(`(pid ${process.pid})`);
});

describe.skipIf(postgresPrograms() === null)('the hold of a PostgreSQL database', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.stop());

  async function asked<Row>(url: string, sql: string): Promise<Row[]> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const { rows } = await client.query(sql);
    await client.end();
    return rows as Row[];
  }

  const sessions = (url: string) =>
    asked<{ pid: number }>(
      url,
      "select pid from pg_stat_activity where application_name like 'sandbox-manager %' and datname = current_database()",
    );

  it('is shared by replicas, and by none of them with one that is alone', async () => {
    const url = await server.database();
    const [one, other] = [await held(url, false), await held(url, false)];
    await expect(held(url)).rejects.toMatchObject({ exit_code: 2 });
    await one.release();
    await other.release();
    await held(url);
    await expect(held(url, false)).rejects.toThrow('give every one the same number');
    await held(await server.database());
  });

  it('is taken again when its session is lost', async () => {
    const url = await server.database();
    const hold = await held(url);
    const [{ pid } = { pid: 0 }] = await sessions(url);
    await asked(url, `select pg_terminate_backend(${pid})`);
    await eventually(async () => {
      const now = await sessions(url);
      expect(now).toHaveLength(1);
      expect(now[0]?.pid).not.toBe(pid);
    });
    const is_displaced = Promise.race([hold.displaced.then(() => true), false]);
    expect(await is_displaced).toBe(false);
    await expect(held(url)).rejects.toMatchObject({ exit_code: 2 });
  });

  it('says that it is displaced where somebody else has it by then', async () => {
    const url = await server.database();
    const hold = await held(url);
    const thief = new pg.Client({ connectionString: url, application_name: 'sandbox-manager of another' });
    await thief.connect();
    onTestFinished(() => thief.end());
    const waiting = thief.query(
      "select pg_advisory_lock(1935833192, hashtext(coalesce(current_schema(), '')))",
    );
    const lost = await sessions(url);
    await asked(url, `select pg_terminate_backend(${Math.min(...lost.map(({ pid }) => pid))})`);
    await waiting;
    expect(await hold.displaced).toContain('sandbox-manager of another');
  });
});
