import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { TreeFinder } from '../../../src/process/tree/tree.ts';
import { eventually } from '../../support/eventually.ts';
import { isAlive, start } from '../../support/process/harness.ts';
import { HAS_NEW_TABLE, NEW_TABLE, unlessNewTable } from '../../support/rights.ts';
import { scratchFolder } from '../../support/scratch.ts';

const run = promisify(execFile);
/** Not the first process of the table, nor its child: there the whole table is the sandbox. */
const IN_NEW_TABLE = [...NEW_TABLE, 'sh', '-c', '("$@"; :); :', '-'];
const program = join(import.meta.dirname, '../../support/process/reused-pid-program.ts');

test
  .skipIf(!HAS_NEW_TABLE)
  .each([
    'remove',
    'pause',
    'stop',
    'stop of the next daemon',
    'stop of a daemon that learns of the end',
    'signal',
  ])(`a stranger that got the pid of an ended process is left alone: %s${unlessNewTable}`, async (how) => {
  const root = await mkdtemp(join(tmpdir(), 'sandboxd-reused-'));
  try {
    const args = [process.execPath, program, join(root, 'processes'), how];
    const { stdout } = await run('unshare', [...IN_NEW_TABLE, ...args]);
    const { pid, stranger } = JSON.parse(stdout);
    expect(stranger).toEqual({ session: pid, is_running: true });
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});

test('what a process leaves in its session belongs to it, even if it is forked later and carries no mark', async () => {
  const { supervisor } = await start();
  const script = `env -i sh -c 'while :; do sleep 0.01; done; :' >/dev/null & exec sh -c 'echo $0' $!`;
  const { process: view } = await supervisor.spawn({ shell: script, process_id: 'p' });
  await supervisor.finished('p');
  const { stdout } = await supervisor.outputTail('p', 100);
  const left = Number(stdout);
  expect(await isAlive(left)).toBe(true);
  expect((await supervisor.get('p')).resource_usage.processes).toBeGreaterThan(0);
  await supervisor.remove('p');
  await eventually(async () => expect(await isAlive(left)).toBe(false));
  expect(view.pid).not.toBe(left);
});

test('for no tree at all the process table is not read: the answer waits for no other thread', async () => {
  let found: unknown = null;
  void new TreeFinder().find([]).then((trees) => {
    found = trees;
  });
  await null; // a read would take until a later turn of the event loop
  await null;
  expect(found).toEqual([]);
});

const table_program = join(import.meta.dirname, '../../support/process/table-program.ts');

/** What became of a process that left its session, its parent and its environment. */
async function fateOfStray(...through: string[]): Promise<unknown> {
  const args = [
    ...NEW_TABLE,
    ...through,
    process.execPath,
    table_program,
    join(scratchFolder(), 'processes'),
  ];
  return JSON.parse((await run('unshare', args)).stdout);
}

const BELONGS = { stopped: true, resumed: true, ended: true };

test.skipIf(!HAS_NEW_TABLE)(
  `where the daemon is the first process, whoever is in its process table is paused and ended with it${unlessNewTable}`,
  async () => {
    expect(await fateOfStray()).toEqual(BELONGS);
  },
);

test.skipIf(!HAS_NEW_TABLE)(
  `the same where it is the only one beside the first${unlessNewTable}`,
  async () => {
    expect(await fateOfStray('sh', '-c', '"$@"; :', '-')).toEqual(BELONGS);
  },
);

test.skipIf(!HAS_NEW_TABLE)(
  `where others were there before it, who has left every tree is left alone${unlessNewTable}`,
  async () => {
    const shared = '(sleep 1000 & "$@"; :); :';
    expect(await fateOfStray('sh', '-c', shared, '-')).toEqual({
      stopped: false,
      resumed: true,
      ended: false,
    });
  },
);
