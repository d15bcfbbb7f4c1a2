import { constants } from 'node:fs';
import { access, mkdir, mkdtemp, rm, rmdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { classifyEnd, hasDumpedCore } from '../../../src/process/exit/exit-classifier.ts';
import { OomWatch } from '../../../src/process/exit/oom.ts';
import { eventually } from '../../support/eventually.ts';
import { start } from '../../support/process/harness.ts';

const MEMORY_GROUPS = '/sys/fs/cgroup/memory';

async function isWritable(path: string): Promise<boolean> {
  return access(path, constants.W_OK).then(
    () => true,
    () => false,
  );
}

const can_limit_memory = (await isWritable(`${MEMORY_GROUPS}/tasks`)) && (await isWritable('/dev/kmsg'));

test.runIf(can_limit_memory)(
  'a process that the kernel killed for its memory crashed with reason oom',
  async () => {
    const group = join(MEMORY_GROUPS, `sandboxd-test-${process.pid}`);
    await mkdir(group);
    await writeFile(join(group, 'memory.limit_in_bytes'), String(16 * 1024 * 1024));
    const { supervisor, events } = await start();
    const { process: view } = await supervisor.spawn({
      shell: `echo $$ > ${group}/cgroup.procs; exec tail /dev/zero`,
    });
    await supervisor.finished(view.process_id);
    await eventually(() => expect(events).toHaveLength(2));
    expect(events[1]).toMatchObject({
      event_type: 'process.crashed',
      payload: { reason: 'oom', signal: 'SIGKILL', exit_code: 137 },
    });
    const other = await supervisor.spawn({ shell: 'kill -KILL $$' });
    await supervisor.finished(other.process.process_id);
    await eventually(() => expect(events).toHaveLength(4));
    expect(events[3]?.payload).toMatchObject({ reason: 'signal' });
    await rmdir(group);
  },
);

test('a signal that was asked for is an exit, another one is a crash, and what nobody knows is unknown', async () => {
  const oom = new OomWatch();
  const facts = {
    pid: 2 ** 30,
    cwd: '/',
    started_at_ms: 0,
    started_boot_ms: 0,
    requested_signals: new Set(['SIGTERM']),
  };
  const end = (code: number | null, signal: string | null) => classifyEnd({ code, signal }, facts, oom);
  expect(await end(0, null)).toEqual({ kind: 'exited', exit_code: 0, signal: null });
  expect(await end(137, null)).toEqual({ kind: 'exited', exit_code: 137, signal: null });
  expect(await end(null, 'SIGTERM')).toEqual({ kind: 'exited', exit_code: 143, signal: 'SIGTERM' });
  expect(await end(null, 'SIGHUP')).toMatchObject({ kind: 'crashed', exit_code: 129, reason: 'signal' });
  expect(await classifyEnd(null, facts, oom)).toEqual({ kind: 'exited', exit_code: null, signal: null });
});

test('a core dump is told where the kernel leaves one, and for signals that make one only', async () => {
  const { readFile } = await import('node:fs/promises');
  const pattern = (await readFile('/proc/sys/kernel/core_pattern', 'utf8')).trim();
  const folder = await mkdtemp(join(tmpdir(), 'sandboxd-core-'));
  expect(await hasDumpedCore('SIGTERM', 1, folder, 0)).toBe(false);
  if (pattern === 'core') {
    expect(await hasDumpedCore('SIGSEGV', 1, folder, 0)).toBe(false);
    await writeFile(join(folder, 'core'), '');
    await writeFile(join(folder, 'core.1'), '');
    expect(await hasDumpedCore('SIGSEGV', 1, folder, Date.now())).toBe(true);
    expect(await hasDumpedCore('SIGSEGV', 1, folder, Date.now() + 60_000)).toBe(false);
  }
  await rm(folder, { recursive: true });
});
