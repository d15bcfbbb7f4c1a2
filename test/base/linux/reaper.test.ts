import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { start } from '../../support/process/harness.ts';
import { scratchFolder } from '../../support/scratch.ts';

/** The kernel writes a file where the process is. */
const can_dump = readFileSync('/proc/sys/kernel/core_pattern', 'latin1').trim() === 'core';

test('the flag of a core dump is the one that the kernel gives', async () => {
  const { supervisor, events } = await start();
  const folder = scratchFolder();
  const end = async (limit: string) => {
    const { process } = await supervisor.spawn({ shell: `ulimit -c ${limit}; kill -SEGV $$`, cwd: folder });
    await supervisor.finished(process.process_id);
    const ended = () => events.filter(({ event_type }) => event_type === 'process.crashed');
    const found = await eventually(() => {
      const event = ended().find(({ payload }) => payload.process_id === process.process_id);
      expect(event).toBeDefined();
      return event?.payload as { core_dumped: boolean };
    });
    return found.core_dumped;
  };
  expect(await end('0')).toBe(false);
  if (can_dump) expect(await end('unlimited')).toBe(true);
});

test('children of other parts of the daemon keep their ends', async () => {
  const { supervisor } = await start();
  const { process: own } = await supervisor.spawn({ shell: 'exit 3' });
  const other = spawn('/bin/sh', ['-c', 'exit 4']);
  const [[code], ended] = await Promise.all([once(other, 'exit'), supervisor.finished(own.process_id)]);
  expect([code, ended.exit_code]).toEqual([4, 3]);
});
