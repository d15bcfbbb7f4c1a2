import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import type { open } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { newRecord } from '../../src/process/record.ts';
import { eventually } from '../support/eventually.ts';
import { listOf, outputOf, start } from '../support/process/harness.ts';
import { scratchFolder } from '../support/scratch.ts';

const read = vi.hoisted(() => ({ paths: [] as string[], hold: Promise.resolve() as Promise<void> }));

vi.mock('node:fs/promises', async (original) => {
  const real = (await original()) as { open: typeof open };
  const spied: typeof open = async (path, ...rest) => {
    if (String(path).endsWith('process.json')) {
      read.paths.push(String(path));
      await read.hold;
    }
    return real.open(path, ...rest);
  };
  return { ...real, open: spied };
});

afterEach(() => {
  read.paths.length = 0;
  read.hold = Promise.resolve();
});

const REQUEST = { command: ['true'], env: { LARGE: 'x'.repeat(100_000) } };

/** A folder with processes that have ended, as a daemon leaves them: `p0` is the oldest. */
function withEnded(count: number): string {
  const directory = join(scratchFolder(), 'processes');
  for (let index = 0; index < count; index++) {
    const process_id = `p${index}`;
    const folder = join(directory, process_id);
    mkdirSync(folder, { recursive: true });
    const at_ms = Date.now() - count + index;
    const record = newRecord(process_id, REQUEST, at_ms, false);
    record.run = { pid: 999_999_999, boot_id: 'b', start_ticks: 1, started_at_ms: at_ms, is_ready: null };
    record.end = { kind: 'exited', exit_code: 0, signal: null, exited_at_ms: at_ms };
    record.is_final = true;
    const lines = `\n${JSON.stringify({ request: REQUEST })}\n${JSON.stringify(record)}`;
    writeFileSync(join(folder, 'process.json'), lines, { mode: 0o400 });
    writeFileSync(join(folder, 'stdout'), `kept ${index}`);
  }
  return directory;
}

/** From now on no record can be opened until the returned function is called. */
function holdReads(): () => void {
  const held = Promise.withResolvers<void>();
  read.hold = held.promise;
  return held.resolve;
}

test('no record of an ended process is read before the daemon is ready, and all are afterwards', async () => {
  const directory = withEnded(30);
  const release = holdReads();
  const { supervisor } = await start({ directory }); // does not wait for them
  expect(read.paths.length).toBeLessThanOrEqual(1); // the first, afterwards
  release();
  expect(await listOf(supervisor)).toHaveLength(30);
  expect(read.paths).toHaveLength(30);
  expect((await outputOf(supervisor, 'p7')).stdout).toBe('kept 7');
});

test('what was left is known before it was read: by its id, by its request, and by what cannot be done', async () => {
  const directory = withEnded(5);
  const release = holdReads();
  const { supervisor } = await start({ directory });
  expect(() => supervisor.signal('p4', 'TERM')).toThrow('has ended');
  const asked = [supervisor.get('p4'), supervisor.spawn({ ...REQUEST, process_id: 'p3' })] as const;
  const other = supervisor.spawn({ command: ['false'], process_id: 'p2' }).catch((error) => error.code);
  const fresh = await supervisor.spawn({ command: ['sleep', '1000'] });
  expect(fresh.created).toBe(true);
  release();
  expect(await asked[0]).toMatchObject({ process_id: 'p4', state: 'exited', exit_code: 0 });
  expect(await asked[1]).toMatchObject({ created: false });
  expect(await other).toBe('conflict');
  expect((await listOf(supervisor)).map(({ process_id }) => process_id)).toEqual(
    ['p0', 'p1', 'p2', 'p3', 'p4'].concat(fresh.process.process_id),
  );
});

test('of more than are kept the oldest go, while the others are being read', async () => {
  const directory = withEnded(1_150);
  const { supervisor } = await start({ directory });
  await eventually(async () => expect(await listOf(supervisor)).toHaveLength(1_000));
  await expect(supervisor.get('p149')).rejects.toMatchObject({ code: 'not_found' });
  expect(await supervisor.get('p150')).toMatchObject({ state: 'exited' });
}, 60_000);

test('a process that ends is marked on the disk, with its whole request, and keeps no copy of it', async () => {
  const { supervisor, directory, again } = await start();
  const first = await supervisor.spawn({ ...REQUEST, process_id: 'p' });
  await supervisor.finished('p');
  const file = join(directory, 'p/process.json');
  await eventually(() => expect(statSync(file).mode & 0o777).toBe(0o400));
  expect(readFileSync(file, 'utf8').split('x'.repeat(100_000))).toHaveLength(2);
  const same = { ...REQUEST, process_id: 'p' };
  expect(await supervisor.spawn(same)).toMatchObject({ created: false });
  await supervisor.stop();
  const next = (await again()).supervisor;
  expect(await next.spawn(same)).toMatchObject({ created: false });
  const restarted = await next.restart('p');
  expect(restarted.pid).not.toBe(first.process.pid);
});
