import { constants } from 'node:fs';
import { access, mkdir, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { classifyEnd } from '../../../src/process/exit/exit-classifier.ts';
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
    started_boot_ms: 0,
    requested_signals: new Set(['SIGTERM']),
  };
  const exited = (code: number) => classifyEnd({ code, signal: null }, facts, oom);
  const killed = (signal: string) => classifyEnd({ code: null, signal, core_dumped: true }, facts, oom);
  expect(await exited(0)).toEqual({ kind: 'exited', exit_code: 0, signal: null });
  expect(await exited(137)).toEqual({ kind: 'exited', exit_code: 137, signal: null });
  expect(await killed('SIGTERM')).toEqual({ kind: 'exited', exit_code: 143, signal: 'SIGTERM' });
  expect(await killed('SIGHUP')).toMatchObject({
    kind: 'crashed',
    exit_code: 129,
    reason: 'signal',
    core_dumped: true,
  });
  expect(await classifyEnd(null, facts, oom)).toEqual({ kind: 'exited', exit_code: null, signal: null });
});
