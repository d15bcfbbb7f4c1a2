import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import {
  childrenOf,
  identify,
  isProcessAlive,
  killMarked,
  markOf,
  type ProcessIdentity,
  SANDBOX_MARK_VARIABLE,
  waitForExit,
} from '../../../src/runtime/local/host-process.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { scratchFolder } from '../../support/scratch.ts';

const OFTEN = { timeout: 60_000, interval: 1 };

function started(shell: string, env: NodeJS.ProcessEnv = {}): ChildProcess {
  const child = spawn('sh', ['-c', shell], { env: { PATH: process.env.PATH, ...env }, stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

async function identityOf({ pid }: ChildProcess): Promise<ProcessIdentity> {
  return (await identify(pid as number)) as ProcessIdentity;
}

/** The program of this process that reads the process table. */
function lookerOfThisProcess(): number {
  const children = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8').trim();
  const isLooker = (pid: string) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('launcher\0look');
  return Number(children.split(' ').find(isLooker));
}

describe('a process', () => {
  it('is alive until it ends', async () => {
    const child = started('exec sleep 1000');
    const identity = await identityOf(child);
    expect(await isProcessAlive(identity)).toBe(true);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(await isProcessAlive(identity)).toBe(false);
    expect(await identify(child.pid as number)).toBeNull();
  });

  it('is not alive as a zombie', async () => {
    // The shell becomes a program that never reaps the child it inherits.
    const parent = started('sleep 1000 & exec sleep 1000');
    const child = await eventually(async () => {
      const [pid] = await childrenOf(parent.pid as number);
      if (pid === undefined) throw new Error('there is no child yet');
      return pid;
    });
    const identity = (await identify(child)) as ProcessIdentity;
    process.kill(child, 'SIGKILL');
    await eventually(async () => expect(await childrenOf(parent.pid as number)).toEqual([]));
    expect(await identify(child)).toMatchObject({ pid: child });
    expect(await isProcessAlive(identity)).toBe(false);
  });

  it('is told from another one with its pid, and from one before a reboot', async () => {
    const identity = await identityOf(started('exec sleep 1000'));
    expect(await isProcessAlive({ ...identity, start_ticks: identity.start_ticks + 1 })).toBe(false);
    expect(await isProcessAlive({ ...identity, boot_id: 'another boot' })).toBe(false);
  });

  it('is alive while the kernel does not say when it began, and not once it has ended', async () => {
    const child = started('exec sleep 1000');
    const identity = await identityOf(child);
    process.kill(lookerOfThisProcess(), 'SIGSTOP');
    expect(await isProcessAlive(identity)).toBe(true);
    expect(await identify(identity.pid)).toMatchObject({ start_ticks: 0 });
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(await isProcessAlive(identity)).toBe(false);
  });

  it('is waited for until the time is over', async () => {
    const clock = new ManualClock();
    const child = started('exec sleep 1000');
    const identity = await identityOf(child);
    let outcome: boolean | null = null;
    const waiting = waitForExit(clock, identity, 1_000).then((value) => {
      outcome = value;
    });
    await eventually(async () => {
      await clock.advance(50);
      expect(outcome).toBe(false);
    }, OFTEN);
    expect(clock.monotonicMs()).toBeGreaterThanOrEqual(1_000);
    await waiting;
    child.kill('SIGKILL');
    expect(await waitForExit(systemClock, identity, 60_000)).toBe(true);
  });
});

describe('the processes with a mark', () => {
  it('are all killed, with their children, and no others', async () => {
    const directory = scratchFolder();
    const marked = { [SANDBOX_MARK_VARIABLE]: markOf(directory) };
    const ends = [
      started('exec sleep 1000', marked),
      // Its child has dropped the mark.
      started('env -i /bin/sleep 1000 & wait', marked),
    ].map((child) => once(child, 'exit'));
    const others = [
      started('exec sleep 1000', { [SANDBOX_MARK_VARIABLE]: markOf(`${directory}-other`) }),
      started('exec sleep 1000', { [SANDBOX_MARK_VARIABLE]: `${markOf(directory)}0` }),
      started('exec sleep 1000', { NOT: `${SANDBOX_MARK_VARIABLE}=${markOf(directory)}` }),
    ];
    await eventually(async () => {
      expect(await childrenOf(process.pid)).toEqual(expect.arrayContaining(others.map(({ pid }) => pid)));
    });
    await killMarked(systemClock, directory);
    for (const [code, signal] of await Promise.all(ends)) expect([code, signal]).toEqual([null, 'SIGKILL']);
    for (const other of others) expect(await isProcessAlive(await identityOf(other))).toBe(true);
    await killMarked(systemClock, directory);
  });

  it('show a hash of the path, not the path', () => {
    expect(markOf('/data/sbx-1')).toMatch(/^[0-9a-f]{64}$/);
    expect(markOf('/data/sbx-1')).not.toBe(markOf('/data/sbx-2'));
  });
});
