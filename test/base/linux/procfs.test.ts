import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  bootTicks,
  CLOCK_TICK_MS,
  findSocketHolder,
  isZombie,
  readAllStats,
  readBootId,
  readEnvironment,
  readKernelSetting,
  readPidNamespace,
  readPids,
  readProgramName,
  readStat,
  readStatNow,
  readVariable,
} from '../../../src/base/linux/procfs.ts';
import { listenersOn } from '../../../src/base/linux/sockets.ts';
import { eventually } from '../../support/eventually.ts';

/** The pid of a child that runs until the test ends. */
function child(name: string, env: Record<string, string> = {}) {
  const started = spawn('/bin/sh', ['-c', 'read line', name], { env, stdio: ['pipe', 'ignore', 'ignore'] });
  onTestFinished(() => void started.kill('SIGKILL'));
  return started.pid as number;
}

describe('the process table', () => {
  it('tells parent, group and start of a process', async () => {
    const before = bootTicks();
    const pid = child('anything');
    const stat = await readStat(pid);
    expect(stat).toMatchObject({ pid, parent: process.pid, group: readStatNow(process.pid)?.group });
    expect(Math.abs((stat?.start_ticks ?? 0) - before) * CLOCK_TICK_MS).toBeLessThan(60_000);
    expect(readStatNow(pid)?.start_ticks).toBe(stat?.start_ticks);
  });

  it('is not misled by a program whose name looks like fields of the table', async () => {
    const node = spawn(process.execPath, ['-e', "process.title = 'a) Z 1 (b'; process.stdin.resume()"], {
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    onTestFinished(() => void node.kill('SIGKILL'));
    const pid = node.pid as number;
    await eventually(() => expect(readProgramName(pid)).toBe('a) Z 1 (b'), 30_000);
    const stat = await readStat(pid);
    expect(stat).toMatchObject({ pid, parent: process.pid });
    expect(stat && isZombie(stat)).toBe(false);
  });

  it('has every process, and none that does not exist', async () => {
    const pid = child('here');
    expect(await readPids()).toEqual(expect.arrayContaining([pid, process.pid]));
    expect((await readAllStats()).get(pid)).toMatchObject({ parent: process.pid });
    expect(await readStat(0)).toBeNull();
    expect(readStatNow(-1)).toBeNull();
    expect(readProgramName(0)).toBe('');
    expect(await readEnvironment(0)).toEqual([]);
  });

  it('has every process also where there are many', async () => {
    const pids = Array.from({ length: 60 }, (_, index) => child(`child ${index}`));
    const stats = await readAllStats();
    expect(pids.filter((pid) => stats.get(pid)?.parent !== process.pid)).toEqual([]);
    expect([...stats].filter(([pid, stat]) => pid !== stat.pid)).toEqual([]);
  });

  it('knows the environment that a process was started with', async () => {
    const pid = child('with variables', { MARK: 'é', LONGER: 'a=b', EMPTY: '' });
    await eventually(async () => expect(await readVariable(pid, 'MARK')).not.toBeNull(), 30_000);
    expect(await readEnvironment(pid)).toEqual(expect.arrayContaining(['MARK=é', 'LONGER=a=b', 'EMPTY=']));
    expect(await readVariable(pid, 'MARK')).toBe('é');
    expect(await readVariable(pid, 'LONGER')).toBe('a=b');
    expect(await readVariable(pid, 'EMPTY')).toBe('');
    expect(await readVariable(pid, 'MAR')).toBeNull();
  });

  it('names the process that has a socket open', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const inodes = new Set((await listenersOn(port)).map(({ inode }) => inode));
    expect(findSocketHolder(inodes)).toBe(process.pid);
    expect(findSocketHolder(new Set(['0']))).toBeNull();
  });
});

describe('the kernel', () => {
  it('tells its boot and the process table of this program', () => {
    expect(readBootId()).toMatch(/^[0-9a-f-]{36}$/);
    expect(readPidNamespace()).toMatch(/^pid:\[\d+\]$/);
  });

  it('tells its settings, and nothing for one that it does not have', () => {
    expect(Number(readKernelSetting('kernel/pid_max'))).toBeGreaterThan(0);
    expect(readKernelSetting('kernel/no_such_setting')).toBe('');
  });
});
