import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { ProcessTable } from '../../src/base/linux/process-table.ts';
import type { ProcStat } from '../../src/base/linux/procfs.ts';
import { eventually } from '../support/eventually.ts';
import { CAN_HANG, hungMount, unlessHangs } from '../support/hung-mount.ts';

function started(command: string, args: string[]) {
  const child = spawn(command, args, { env: { MARK: command }, stdio: ['pipe', 'pipe', 'ignore'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

// Not beside other tests: whatever asks about such a process waits, also in them.
it.runIf(CAN_HANG)(
  `a process that makes whoever reads of it wait holds up nobody${unlessHangs}`,
  async () => {
    const mount = await hungMount({ file: { text: 'x', mode: 0o644 } });
    // The descriptor is closed in the middle of the exec, which asks the file system.
    const script = 'open F, "<", $ARGV[0]; $| = 1; print "open\n"; <STDIN>; exec "/bin/sleep", "1000"';
    const hanging = Array.from({ length: 6 }, () =>
      started('perl', ['-e', script, join(mount.path, 'file')]),
    );
    await Promise.all(hanging.map(({ stdout }) => once(stdout, 'data')));
    await mount.hang();
    for (const { stdin } of hanging) stdin.write('\n');
    await eventually(async () => expect(await mount.waiting()).toBe(6));
    const table = new ProcessTable(systemClock, 'MARK');
    const pid = started('sh', ['-c', 'read line', 'waiting']).pid as number;
    const pids = hanging.map((child) => child.pid as number);
    const stats = await table.readAll();
    for (const each of pids) expect(stats.get(each)).toMatchObject({ parent: process.pid, start_ticks: 0 });
    await table.readAll();
    const whole = (await table.readAll()).get(pid);
    expect(whole?.start_ticks).toBeGreaterThan(0);
    expect(await table.variables([pid, ...pids])).toEqual(['sh', ...pids.map(() => undefined)]);
    const there = pids.map((each) => stats.get(each) as ProcStat);
    expect(await table.stillThere(there)).toEqual(there);
    await mount.answer();
    await eventually(async () => {
      const [now] = await new ProcessTable(systemClock, 'MARK').read(pids);
      expect(now?.start_ticks).toBeGreaterThan(0);
    });
  },
);
