import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { raceFeed } from '../support/manager/feed-race.ts';
import { postgresPrograms, startPostgres } from '../support/postgres.ts';

/**
 * Reads the feed of events by three followers while the one manager that writes it is killed at random, on SQLite and
 * on PostgreSQL, and tells what came of it. Exit code 1 where an event was missed, came twice or out of order.
 *
 *   node test/bench/feed.ts [--events 100000] [--store sqlite|postgres]
 */
const { values } = parseArgs({
  options: { events: { type: 'string', default: '100000' }, store: { type: 'string' } },
});
const LIFE_MAX_MS = 8_000;

async function run(store: string, database: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'sandbox-manager-feed-'));
  const began_ms = performance.now();
  try {
    const url = database.replace('{folder}', folder);
    const { events, kills, ...wrong } = await raceFeed(url, folder, Number(values.events), LIFE_MAX_MS);
    const seconds = ((performance.now() - began_ms) / 1000).toFixed(0);
    console.log(store, JSON.stringify({ events, kills, seconds }), JSON.stringify(wrong));
    if (Object.values(wrong).some((count) => count > 0)) process.exitCode = 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (values.store !== 'postgres') await run('SQLite', 'sqlite:{folder}/manager.db');
if (postgresPrograms() === null) {
  console.log('PostgreSQL is not installed');
} else if (values.store !== 'sqlite') {
  const server = await startPostgres();
  await run('PostgreSQL', await server.database()).finally(() => server.stop());
}
