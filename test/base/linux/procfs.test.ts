import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  bootTicks,
  CLOCK_TICK_MS,
  findSocketHolder,
  isZombie,
  readBootId,
  readKernelSetting,
  readPidNamespace,
  readPids,
  readProgramName,
  readStatNow,
  readStatus,
} from '../../../src/base/linux/procfs.ts';
import { listenersOn } from '../../../src/base/linux/sockets.ts';
import { eventually } from '../../support/eventually.ts';
import { IS_ROOT } from '../../support/rights.ts';

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
    const stat = readStatNow(pid);
    expect(stat).toMatchObject({ pid, parent: process.pid, group: readStatNow(process.pid)?.group });
    expect(Math.abs((stat?.start_ticks ?? 0) - before) * CLOCK_TICK_MS).toBeLessThan(60_000);
  });

  it('is not misled by a program whose name looks like fields of the table', async () => {
    const node = spawn(process.execPath, ['-e', "process.title = 'a) Z 1 (b'; process.stdin.resume()"], {
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    onTestFinished(() => void node.kill('SIGKILL'));
    const pid = node.pid as number;
    await eventually(() => expect(readProgramName(pid)).toBe('a) Z 1 (b'), 30_000);
    const stat = readStatNow(pid);
    expect(stat).toMatchObject({ pid, parent: process.pid });
    expect(stat && isZombie(stat)).toBe(false);
  });

  it('has every process, and none that does not exist', async () => {
    const pid = child('here');
    expect(await readPids()).toEqual(expect.arrayContaining([pid, process.pid]));
    expect(readStatNow(0)).toBeNull();
    expect(readStatNow(-1)).toBeNull();
    expect(readProgramName(0)).toBe('');
  });

  it.skipIf(!IS_ROOT)('does not take a process that cannot be read for one that has ended', () => {
    const path = fileURLToPath(new URL('../../../src/base/linux/procfs.ts', import.meta.url));
    const ask = `import { readStatNow, readStatus } from ${JSON.stringify(path)};
      for (const read of [readStatNow, readStatus]) {
        try { console.log(read(1)); } catch ({ code, message }) { console.log(code, message); }
      }`;
    const hide = 'mount -t tmpfs none /proc/1 && ln -s stat /proc/1/stat && ln -s status /proc/1/status';
    const said = execFileSync(
      'unshare',
      ['--mount', 'sh', '-c', `${hide} && exec "$0" --input-type=module -e "$1"`, process.execPath, ask],
      { encoding: 'utf8' },
    );
    const refusal = 'too_many_requests The process table cannot be read right now (ELOOP). Try again later.';
    expect(said).toBe(`${refusal}\n${refusal}\n`);
  });

  it('is told by the status of a process as well, but for times', async () => {
    const pid = child('here');
    const stat = readStatNow(pid);
    const status = readStatus(pid);
    expect(status).toMatchObject({ pid, parent: process.pid, group: stat?.group, session: stat?.session });
    expect(status).toMatchObject({ start_ticks: 0, cpu_ticks: 0 });
    expect(status?.memory_pages).toBeGreaterThan(0);
    expect(readStatus(0)).toBeNull();
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
