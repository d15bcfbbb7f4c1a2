import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { deleteUnderKills } from '../support/killed-deletions.ts';
import { postgresPrograms, startPostgres } from '../support/postgres.ts';

/**
 * Deletes sandboxes while the manager is killed at random points, on SQLite and on PostgreSQL, and tells what came of
 * it. Exit code 1 where a deleted sandbox has no notice, or more than one, or one that was not delivered.
 *
 *   node test/bench/manager-kill.ts [--deletions 500] [--store sqlite|postgres]
 */
const { values } = parseArgs({
  options: { deletions: { type: 'string', default: '500' }, store: { type: 'string' } },
});
const deletions = Number(values.deletions);
const folder = mkdtempSync(join(tmpdir(), 'sandbox-manager-kill-'));

async function run(store: string, database: string, life_ms: number): Promise<void> {
  const began_ms = performance.now();
  const result = await deleteUnderKills(database, folder, { deletions, kills_max: deletions, life_ms });
  const seconds = ((performance.now() - began_ms) / 1000).toFixed(0);
  const { torn, not_delivered, not_one, left, ...figures } = result;
  const wrong = { torn, not_delivered, not_one, left };
  console.log(store, JSON.stringify({ ...figures, seconds }), JSON.stringify(wrong));
  if (Object.values(wrong).some((ids) => ids.length > 0)) process.exitCode = 1;
}

try {
  if (values.store !== 'postgres') await run('SQLite', `sqlite:${join(folder, 'manager.db')}`, 120);
  if (postgresPrograms() === null) {
    console.log('PostgreSQL is not installed');
  } else if (values.store !== 'sqlite') {
    const server = await startPostgres();
    await run('PostgreSQL', await server.database(), 600).finally(() => server.stop());
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
