import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../../src/base/clock.ts';
import { ApiError, StartError } from '../../../src/contract/errors.ts';
import { type Database, openDatabase } from '../../../src/manager/database/database.ts';
import { DatabaseClock } from '../../../src/manager/database/database-clock-store.ts';
import { UsageMeter } from '../../../src/manager/usage/meter.ts';
import { UsageStore } from '../../../src/manager/usage/usage-store.ts';

/**
 * Writes windows as a replica does, in transactions that stay open for random times:
 * node window-writer.ts <database url> <team> <name> <count>. The windows' values are 0, 1, 2, …
 */
const [url = '', team_id = '', sandbox_id = '', count = '0'] = process.argv.slice(2);
const MOST_AT_ONCE = 40;
const DELAY_MAX_MS = 12;

const database = await opened();
const store = new UsageStore(database);
const places = { region_id: 'test', cluster_id: 'local' };
const clock = await DatabaseClock.open(database, systemClock);
const meter = new UsageMeter({ store, clock, ...places });
const window_type = 'sandbox.egress_bytes' as const;

for (let written = 0; written < Number(count); ) {
  const size = Math.min(Number(count) - written, 1 + Math.floor(Math.random() * MOST_AT_ONCE));
  const windows = Array.from({ length: size }, (_, i) => ({
    ...{ team_id, sandbox_id, window_type, value: written + i, start_ms: 0, end_ms: 1 },
  }));
  const half = Math.floor(size / 2);
  try {
    await store.write(async (tx) => {
      await meter.record(tx, windows.slice(0, half));
      await sleep(Math.random() * DELAY_MAX_MS);
      await meter.record(tx, windows.slice(half));
      // Some of what is written is never committed.
      if (Math.random() < 0.05) throw new Error('taken back');
    });
    written += size;
  } catch (error) {
    const is_expected = error instanceof ApiError || (error as Error).message === 'taken back';
    if (!is_expected) throw error;
  }
}
await database.close();

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
