import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { scratchFolder } from '../../support/scratch.ts';

const run = promisify(execFile);
const program = join(import.meta.dirname, '../../support/process/table-program.ts');
const NEW_TABLE = ['--pid', '--fork', '--kill-child', '--mount-proc'];

/** What became of a process that left its session, its parent and its environment. */
async function fateOfStray(...through: string[]): Promise<unknown> {
  const args = [...NEW_TABLE, ...through, process.execPath, program, join(scratchFolder(), 'processes')];
  return JSON.parse((await run('unshare', args)).stdout);
}

const BELONGS = { stopped: true, resumed: true, ended: true };

test('where the daemon is the first process, whoever is in its process table is paused and ended with it', async () => {
  expect(await fateOfStray()).toEqual(BELONGS);
});

test('the same where it is the only one beside the first', async () => {
  expect(await fateOfStray('sh', '-c', '"$@"; :', '-')).toEqual(BELONGS);
});

test('where others were there before it, who has left every tree is left alone', async () => {
  const shared = '(sleep 1000 & "$@"; :); :';
  expect(await fateOfStray('sh', '-c', shared, '-')).toEqual({ stopped: false, resumed: true, ended: false });
});
