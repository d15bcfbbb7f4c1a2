import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { execa } from 'execa';
import { systemClock } from '../../../src/base/clock.ts';
import { openDatabase } from '../../../src/manager/database/database.ts';
import { DatabaseClock } from '../../../src/manager/database/database-clock-store.ts';
import { Usage } from '../../../src/manager/usage/usage.ts';
import { NoRuntime } from '../../../src/runtime/no-runtime.ts';

const TEAM = 'team_1';
const READ_EVERY_MS = 5;

/** What a reader came to who followed the cursor while others wrote. */
export interface RaceResult {
  read: number;
  /** Pages that were read before the last writer had ended. */
  pages_meanwhile: number;
  missed: number;
  repeated: number;
}

/** So many writers, each a process, and one reader that follows the cursor through all that they commit. */
export async function race(url: string, writers: number, windows_each: number): Promise<RaceResult> {
  const database = await openDatabase(url);
  const places = { region_id: 'test', cluster_id: 'local' };
  const clock = await DatabaseClock.open(database, systemClock);
  const usage = await Usage.open(database, { runtime: new NoRuntime(), clock, ...places }, true);
  const program = join(import.meta.dirname, 'window-writer.ts');
  const children = Array.from({ length: writers }, (_, i) =>
    execa(process.execPath, [program, url, TEAM, `sbx_${i}`, String(windows_each)], {
      stdio: 'inherit',
      reject: false,
    }),
  );
  let is_written = false;
  const written = Promise.all(children).then((ends) => {
    is_written = true;
    return ends.filter(({ failed }) => failed).length;
  });
  try {
    const seen = new Map<string, number>();
    let cursor: string | undefined;
    let pages_meanwhile = 0;
    for (;;) {
      const was_written = is_written;
      const page = await usage.page(TEAM, { cursor, limit: 100, window_type: undefined });
      for (const { sandbox_id, value } of page.windows) {
        const key = `${sandbox_id}/${value}`;
        seen.set(key, (seen.get(key) ?? 0) + 1);
      }
      cursor = page.next_cursor;
      if (page.windows.length > 0 && !was_written) pages_meanwhile += 1;
      if (page.windows.length === 0 && was_written) break;
      if (page.windows.length < 100) await sleep(READ_EVERY_MS);
    }
    const failed = await written;
    if (failed > 0) throw new Error(`${failed} writers failed`);
    const repeated = [...seen.values()].filter((times) => times > 1).length;
    return { read: seen.size, pages_meanwhile, missed: writers * windows_each - seen.size, repeated };
  } finally {
    for (const child of children) child.kill('SIGKILL');
    await database.close();
  }
}
