import { mkdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, sleep } from '../../../base/clock.ts';
import { makeFolder } from '../../../base/folder.ts';

/** A disk that takes longer is waited for where it holds up nobody. */
const ANSWER_MS = 500;

/**
 * Resolves once the state directory's disk has taken a change, tried outside of this thread. What is wrong with a
 * directory that refuses one is for whoever opens it to say.
 */
export async function diskAnswered(state_dir: string): Promise<void> {
  const probe = join(state_dir, '.probe');
  await makeFolder(state_dir)
    .then(() => mkdir(probe, { mode: 0o700 }))
    .then(() => rmdir(probe))
    .catch(() => rmdir(probe).catch(() => {}));
}

/** Whether it does so before long. */
export function diskAnswers(state_dir: string, clock: Clock): Promise<boolean> {
  const answered = diskAnswered(state_dir).then(() => true);
  return Promise.race([answered, sleep(clock, ANSWER_MS).then(() => false)]);
}
