import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { COMMIT_TIMEOUT_MS } from '../../../../src/contract/defaults.ts';
import { diskAnswered, diskAnswers } from '../../../../src/outbox/sqlite/files/disk-answers.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { scratchFolder } from '../../../support/scratch.ts';

test('a disk that answers is left as it was, also where its folder was not there yet', async () => {
  const state_dir = join(scratchFolder(), 'state');
  expect(await diskAnswers(state_dir, new ManualClock())).toBe(true);
  expect(await readdir(state_dir)).toEqual([]);
});

test('a disk that refuses has answered: what is wrong is said by those who use it', async () => {
  await diskAnswered('/proc/no-such-folder', new ManualClock());
});

test('a disk has answered only when a sync is through, since some hang at the sync alone', async () => {
  const state_dir = scratchFolder();
  const trace = join(scratchFolder(), 'trace');
  const module = join(import.meta.dirname, '../../../../src/outbox/sqlite/files/disk-answers.ts');
  const script = `
    import { diskAnswered } from ${JSON.stringify(module)};
    await diskAnswered(${JSON.stringify(state_dir)}, { monotonicMs: () => 0 });
  `;
  const calls = ['-e', 'trace=mkdir,fsync,rmdir'];
  const node = [process.execPath, '--input-type=module', '-e', script];
  await promisify(execFile)('strace', ['-f', '-y', '-o', trace, ...calls, ...node]);
  const steps = (await readFile(trace, 'utf8')).split('\n').filter((line) => line.includes(state_dir));
  expect(steps.map((line) => /\d+ +(\w+)\(/.exec(line)?.[1]).slice(-3)).toEqual(['mkdir', 'fsync', 'rmdir']);
});

test('a disk that took longer to answer than a commit may is asked again', async () => {
  const clock = new ManualClock();
  const took_ms = [30_000, COMMIT_TIMEOUT_MS, COMMIT_TIMEOUT_MS - 1, 1];
  await diskAnswered('/unused', clock, () => clock.advance(took_ms.shift() ?? 0));
  expect(took_ms).toEqual([1]);
});
