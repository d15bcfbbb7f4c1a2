import { mkdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, sleep } from '../base/clock.ts';

/** A disk that takes longer is waited for where it holds up nobody. */
const ANSWER_MS = 500;

/**
 * Whether the state directory's disk takes a change before long, tried outside of this thread. What is wrong with a
 * directory that refuses one is for whoever opens it to say.
 */
export async function diskAnswers(state_dir: string, clock: Clock): Promise<boolean> {
  const probe = join(state_dir, '.probe');
  const answered = mkdir(state_dir, { recursive: true, mode: 0o700 })
    .then(() => mkdir(probe, { mode: 0o700 }))
    .then(() => rmdir(probe))
    .catch(() => rmdir(probe).catch(() => {}))
    .then(() => true);
  return Promise.race([answered, sleep(clock, ANSWER_MS).then(() => false)]);
}
