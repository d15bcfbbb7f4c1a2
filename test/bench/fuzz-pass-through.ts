import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/base/clock.ts';
import type { Scope } from '../../src/contract/tokens.ts';
import { openDatabase } from '../../src/manager/database/database.ts';
import { DatabaseClock } from '../../src/manager/database/database-clock-store.ts';
import { TokenStore } from '../../src/manager/database/token-store.ts';
import { WatchedSandbox } from '../support/fuzzed-sandbox.ts';
import { Client } from '../support/manager/manager-client.ts';
import { ManagerProgram } from '../support/manager-program.ts';
import { fuzzPassThrough } from '../support/pass-through-fuzz.ts';

/**
 * `node test/bench/fuzz-pass-through.ts [requests] [seed]`: raw requests at a manager's pass-through to two real
 * sandboxes, with a token that may only read one of them and one of another team that may do nothing with it.
 */
const [, , count = '50000', seed = '1'] = process.argv;
const folder = mkdtempSync(join(tmpdir(), 'sandboxd-fuzz-'));
const database = `sqlite:${join(folder, 'manager.db')}`;
const data_dir = join(folder, 'data');
const manager = await ManagerProgram.start([
  ...['--listen', '127.0.0.1:0', '--database', database, '--runtime', 'local', '--data-dir', data_dir],
  ...['--secret-key-file', join(folder, 'key'), '--allow-webhook-cidr', '127.0.0.0/8'],
]);
const client = async (team_id: string, ...scopes: Scope[]) => {
  const opened = await openDatabase(database);
  const clock = await DatabaseClock.open(opened, systemClock);
  const token = await new TokenStore(opened.db, clock).create(team_id, scopes, false);
  await opened.close();
  return new Client(() => manager.url, token);
};
const owner = await client('team_owner', 'sandboxes:write');
const reader = await client('team_owner', 'sandboxes:read');
const stranger = await client('team_stranger', 'sandboxes:write');
const webhook = { url: 'http://127.0.0.1:9/nobody' };
const watched = new WatchedSandbox(owner, data_dir, await owner.claim({ webhook }));
await watched.begin();
const port = Number(new URL(manager.url).port);
const target = { port, tokens: [reader.token, stranger.token], sandbox_ids: [watched.sandbox_id] };
const began_ms = performance.now();
let strays = 0;
let is_over = false;
const asking = (async () => {
  while (!is_over) strays += await watched.strayAnswers(10);
})();
const tally = await fuzzPassThrough(target, { count: Number(count), seed: Number(seed) });
is_over = true;
await asking;
const crashes = manager.child.exitCode === null && !/unexpected error/.test(manager.log) ? 0 : 1;
const changes = await watched.changes();
const seconds = Math.round((performance.now() - began_ms) / 1000);
console.log(
  `${tally.requests} requests on ${tally.connections} connections in ${seconds} s (seed ${seed}): ${crashes} crashes, ` +
    `${changes.length} requests executed beyond the token's scope, ${strays} answers of another request; ` +
    `${tally.answers} answers ${JSON.stringify(tally.statuses)}`,
);
for (const change of changes) console.log(`  ${change}`);
await owner.call('DELETE', `/api/v1/sandboxes/${watched.sandbox_id}`);
await manager.end('SIGTERM');
rmSync(folder, { recursive: true, force: true });
process.exitCode = crashes + changes.length + strays === 0 ? 0 : 1;
