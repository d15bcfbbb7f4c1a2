import { close, fsync, mkdir, open, rmdir } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Clock, runTime, sleep } from '../../../base/clock.ts';
import { makeFolder } from '../../../base/folder.ts';
import { COMMIT_TIMEOUT_MS } from '../../../contract/defaults.ts';

/** How long a disk may take to answer before the caller stops waiting for it here. */
const ANSWER_MS = 500;

/**
 * Resolves once the state directory's disk has completed a write and a sync made outside of this thread: some disks
 * buffer writes and hang only at the sync. One that took longer than a commit may is asked again. Never rejects:
 * opening the directory reports what is wrong.
 */
export async function diskAnswered(
  state_dir: string,
  clock: Clock,
  ask: (state_dir: string) => Promise<void> = changeAndSync,
): Promise<void> {
  for (;;) {
    const began_ms = runTime(clock).monotonicMs();
    await ask(state_dir);
    if (runTime(clock).monotonicMs() - began_ms < COMMIT_TIMEOUT_MS) return;
  }
}

// Every start makes these calls first: loading `node:fs/promises` for them would take longer than they do.
const made = promisify(mkdir);
const removed = promisify(rmdir);
const opened = promisify(open);
const synced = promisify(fsync);
const closed = promisify(close);

async function changeAndSync(state_dir: string): Promise<void> {
  const probe = join(state_dir, '.probe');
  try {
    await makeFolder(state_dir);
    await made(probe, { mode: 0o700 });
    const folder = await opened(state_dir, 'r');
    await synced(folder).finally(() => closed(folder));
  } catch {
    // Opening the directory reports it.
  }
  await removed(probe).catch(() => {});
}

/** Whether the disk answers within 0.5 s. */
export function diskAnswers(state_dir: string, clock: Clock): Promise<boolean> {
  const answered = diskAnswered(state_dir, clock).then(() => true);
  return Promise.race([answered, sleep(runTime(clock), ANSWER_MS).then(() => false)]);
}
