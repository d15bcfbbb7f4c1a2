import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { compileNative, compilerVersion, nativeProgram } from '../../../.build/native/compile.ts';
import { eventually } from '../../support/eventually.ts';
import { IS_ROOT } from '../../support/rights.ts';
import { scratchFolder } from '../../support/scratch.ts';

const EMULATOR = '/usr/bin/qemu-aarch64-static';
/** The number of rt_sigtimedwait. */
const WAITING: Record<string, string> = { x64: '128', arm64: '137' };
const ARCHITECTURES = ['x64', 'arm64'].filter(
  (arch) => arch === process.arch || (arch === 'arm64' && existsSync(EMULATOR)),
);

/** As it stands beside its source and, where there is a compiler, as that makes it. */
const MADE = ARCHITECTURES.flatMap((arch) => [
  { arch, is_compiled: false },
  ...(compilerVersion(arch) === null ? [] : [{ arch, is_compiled: true }]),
]);

describe.each(MADE)('the init for $arch, compiled here: $is_compiled', ({ arch, is_compiled }) => {
  /** The command line of the init, ahead of its argument. */
  const init = () => {
    const path = join(scratchFolder(), 'init');
    if (is_compiled) compileNative('init', arch, path);
    else writeFileSync(path, nativeProgram('init', arch), { mode: 0o755 });
    return arch === process.arch ? path : `${EMULATOR} ${path}`;
  };

  it.each([
    ['exit 7', 7],
    ['kill -KILL $$', 137],
  ])('ends as its daemon does: %s', (daemon, code) => {
    const { status } = spawnSync('/bin/sh', ['-c', `sh -c '${daemon}' & exec ${init()} $!`]);
    expect(status).toBe(code);
  });

  it('ends if nothing is left to wait for', () => {
    expect(spawnSync('/bin/sh', ['-c', `exec ${init()} 4194305`]).status).toBe(1);
  });

  // What the emulator holds back cannot be seen from outside.
  it.runIf(arch === process.arch)('passes a signal on', async () => {
    const daemon = `trap "exit 5" TERM; echo ready; while :; do sleep 0.01; done`;
    const child = spawn('/bin/sh', ['-c', `sh -c '${daemon}' & exec ${init()} $!`], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const ended = once(child, 'exit');
    await once(child.stdout, 'data');
    // Before it waits for signals, one would end it.
    await eventually(() => {
      expect(readFileSync(`/proc/${child.pid}/syscall`, 'utf8').split(' ')[0]).toBe(WAITING[arch]);
    });
    child.kill('SIGTERM');
    expect(await ended).toEqual([5, null]);
  });

  it.skipIf(!IS_ROOT)('reaps what its daemon leaves', () => {
    const orphans = '(sleep 0.01 &) ; (sleep 0.02 &) ; (exit 3 &)';
    // As long as an ended process of the namespace is there; the last state is the daemon's own.
    const daemon = `${orphans}; until ! grep -q "^State:.Z" /proc/[0-9]*/status; do sleep 0.01; done; exit 4`;
    const args = ['--pid', '--fork', '--mount-proc', 'sh', '-c', `sh -c '${daemon}' & exec ${init()} $!`];
    expect(spawnSync('unshare', args, { timeout: 60_000 }).status).toBe(4);
  });
});
