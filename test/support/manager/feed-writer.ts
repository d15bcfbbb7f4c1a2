import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import { StartError } from '../../../src/contract/errors.ts';
import { managerConfig } from '../../../src/manager/config/config.ts';
import { type Database, openDatabase } from '../../../src/manager/database/database.ts';
import { openSeal } from '../../../src/manager/database/seal.ts';
import { makeParts, makeSchedule } from '../../../src/manager/parts.ts';
import { claimRequest } from '../../../src/manager/sandboxes/requests.ts';
import { JournalRuntime } from './journal-runtime.ts';

/**
 * A manager without its API, for being killed: node feed-writer.ts <database url> <folder> <key file> <team> write|settle.
 * `write` changes sandboxes for ever; `settle` ends once nothing is left to be done.
 */
const [url = '', folder = '', key_file = '', team_id = '', what = ''] = process.argv.slice(2);
const AT_ONCE = 8;
const CHANGES = 6;
const SETTLE_MS = 100;

const database = await opened();
const config = managerConfig({ database: url, runtime: 'none' }, {}, {});
const log = createLog('fatal');
const runtime = new JournalRuntime(folder);
const parts = await makeParts({ config, log, clock: systemClock, runtime }, database, openSeal(key_file));
const schedule = makeSchedule(parts);
await schedule.start();
process.stdout.write('ready\n');
if (what === 'settle') await settle();
else await Promise.all(Array.from({ length: AT_ONCE }, () => live()));

/** Claims, pauses, resumes and deletes one sandbox after the other; what is refused, as to a busy database, is left. */
async function live(): Promise<void> {
  const caller = { team_id, actor: 'tok_1', scopes: [], is_internal: false };
  for (;;) {
    try {
      const { sandbox_id } = await parts.claims.claim(caller, claimRequest({}, parts.claim_rules), null);
      const named = { sandbox_id, team_id };
      for (let n = 0; n < CHANGES; n++) {
        await (n % 2 === 0 ? parts.sandboxes.pause(named, null) : parts.sandboxes.resume(named, null));
      }
      await parts.deletions.delete(sandbox_id, team_id, { reason: 'api', actor: null });
    } catch {}
  }
}

/** Deletes what was left in the middle of its life, and waits until every event must be in the feed. */
async function settle(): Promise<never> {
  for (;;) {
    const rows = await database.db
      .selectFrom('sandboxes')
      .selectAll()
      .where('deleted_at_ms', 'is', null)
      .execute();
    if (rows.length === 0) break;
    for (const { sandbox_id, operation } of rows) {
      if (operation !== null) continue;
      await parts.deletions.delete(sandbox_id, team_id, { reason: 'api', actor: null }).catch(() => {});
    }
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  }
  await schedule.stop();
  process.exit(0);
}

/** Where others write at the same time a start may find SQLite taken. */
async function opened(): Promise<Database> {
  for (;;) {
    try {
      return await openDatabase(url);
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
    }
  }
}
