import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { ProcessTable } from '../../../src/base/linux/process-table.ts';
import { type ProcStat, readPidNamespace, readStatNow } from '../../../src/base/linux/procfs.ts';
import { eventually } from '../../support/eventually.ts';

const newTable = () => new ProcessTable(systemClock, 'MARK');

function started(command: string, args: string[], env: Record<string, string> = {}): ChildProcess {
  const child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'ignore'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

/** The pid of a child that runs until the test ends. */
const waiting = (env: Record<string, string> = {}) =>
  started('/bin/sh', ['-c', 'read line', 'waiting'], env).pid as number;

/** The programs that read the table for this process, of all tables. */
function lookers(): number[] {
  const { stdout } = spawnSync('pgrep', ['-P', String(process.pid), '-f', '^launcher look'], {
    encoding: 'utf8',
  });
  return stdout.split('\n').filter(Boolean).map(Number);
}

/** Whether it also says when the process began, which only its line of `stat` does. */
const isWhole = (stat: ProcStat | null | undefined) => (stat?.start_ticks ?? 0) > 0;

describe('the process table', () => {
  it('has every process, and none that does not exist', async () => {
    const pids = Array.from({ length: 60 }, () => waiting());
    const table = newTable();
    const stats = await table.readAll();
    expect(pids.filter((pid) => stats.get(pid)?.parent !== process.pid)).toEqual([]);
    expect([...stats].filter(([pid, stat]) => pid !== stat.pid)).toEqual([]);
    expect(await table.read([0, pids[0] as number])).toEqual([null, readStatNow(pids[0] as number)]);
    expect(await table.read([])).toEqual([]);
  });

  it('knows a variable that processes were started with', async () => {
    const table = newTable();
    const values = ['é', 'a=b', '', 'x'.repeat(256)];
    const pids = values.map((MARK) => waiting({ AMARK: 'no', MAR: 'no', MARKS: 'no', MARK }));
    const none = waiting({ LONG: 'MARK=no'.repeat(10_000) });
    const far = waiting({ LONG: 'x'.repeat(100_000), OTHER: 'y'.repeat(65_536), MARK: 'far' });
    await eventually(async () => {
      expect(await table.variables([...pids, none, far, 0])).toEqual([...values, null, 'far', null]);
    }, 30_000);
  });

  it('knows the pid namespaces of processes', async () => {
    expect(await newTable().namespaces([process.pid, 0])).toEqual([readPidNamespace(), null]);
  });

  it('answers many who ask at once, each in order', async () => {
    const table = newTable();
    const pids = Array.from({ length: 20 }, () => waiting());
    const asked = await Promise.all(pids.map((_, from) => table.read(pids.slice(from))));
    for (const [from, stats] of asked.entries())
      expect(stats.map((stat) => stat?.pid)).toEqual(pids.slice(from));
  });

  it('tells a process from one that got its pid later', async () => {
    const [stat] = await newTable().read([waiting()]);
    const later = { ...(stat as ProcStat), start_ticks: (stat as ProcStat).start_ticks + 1 };
    const gone = { ...later, pid: 0 };
    expect(await newTable().stillThere([stat as ProcStat, later, gone])).toEqual([stat]);
  });

  it('goes on where its program is killed', async () => {
    const table = newTable();
    const pid = waiting();
    const before = lookers();
    await table.read([pid]);
    for (let kills = 0; kills < 5; kills++) {
      for (const looker of lookers()) if (!before.includes(looker)) process.kill(looker, 'SIGKILL');
      expect((await table.read([pid]))[0]?.pid).toBe(pid);
    }
    await eventually(async () => expect(isWhole((await table.read([pid]))[0])).toBe(true));
  });

  it('goes by the status of a process whose line is not answered, and asks again later', async () => {
    let now_ms = systemClock.monotonicMs();
    const clock = {
      ...systemClock,
      monotonicMs: () => now_ms,
      after: (_: number, run: () => void) => systemClock.after(20, run),
    };
    const table = new ProcessTable(clock, 'MARK');
    const pid = waiting();
    const before = lookers();
    const whole = (await table.readAll()).get(pid);
    const [looker = 0] = lookers().filter((each) => !before.includes(each));
    process.kill(looker, 'SIGSTOP');
    // What was seen before is believed as long as nothing speaks against it.
    expect(await table.read([pid])).toEqual([whole]);
    expect(lookers()).not.toContain(looker);
    expect(await table.variables([pid])).toEqual([null]);
    const other = waiting();
    expect(isWhole((await table.read([other]))[0])).toBe(true);
    now_ms += 20_000;
    expect(isWhole((await table.read([pid]))[0])).toBe(true);
  });
});
