import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { COMPILERS, compileInit, compilerVersion, initProgram } from '../../../.build/image/init.ts';
import { eventually } from '../../support/eventually.ts';
import { scratchFolder } from '../../support/scratch.ts';

const EMULATOR = '/usr/bin/qemu-aarch64-static';
/** The number of rt_sigtimedwait. */
const WAITING: Record<string, string> = { x64: '128', arm64: '137' };
/** Byte offsets in the header of a 64-bit ELF file, and in those of its sections. */
const SECTIONS_AT = 40;
const SECTION_NAMES = 62;
const SECTION_BYTES = 64;
const SECTION_DATA_AT = 24;
const SECTION_LENGTH_AT = 32;
const ARCHITECTURES = ['x64', 'arm64'].filter(
  (arch) => arch === process.arch || (arch === 'arm64' && existsSync(EMULATOR)),
);

it('there is none for another machine', () => {
  expect(() => initProgram('riscv64')).toThrow('riscv64 is not supported');
});

/** The machine code of a program: its section `.text`. How a linker lays the rest out is its own affair. */
function codeOf(file: Buffer): string {
  const section = (index: number) => {
    const header = Number(file.readBigUInt64LE(SECTIONS_AT)) + index * SECTION_BYTES;
    const at = Number(file.readBigUInt64LE(header + SECTION_DATA_AT));
    const length = Number(file.readBigUInt64LE(header + SECTION_LENGTH_AT));
    return { name_at: file.readUInt32LE(header), bytes: file.subarray(at, at + length) };
  };
  const names_index = file.readUInt16LE(SECTION_NAMES);
  const names = section(names_index).bytes;
  for (let index = 0; index < names_index; index++) {
    const { name_at, bytes } = section(index);
    if (names.toString('latin1', name_at, names.indexOf(0, name_at)) === '.text')
      return bytes.toString('hex');
  }
  throw new Error('the program has no machine code');
}

// What another compiler makes of it has the cases below.
describe.each(Object.entries(COMPILERS))('the init for %s beside its source', (arch, { name, version }) => {
  const is_here = compilerVersion(arch) === version;
  const skipped = is_here ? '' : ' (skipped: it is not installed here)';

  it.runIf(is_here)(`is what ${name} ${version} makes of it${skipped}`, () => {
    const path = join(scratchFolder(), 'init');
    compileInit(arch, path);
    expect(codeOf(readFileSync(path))).toBe(codeOf(initProgram(arch)));
  });
});

/** As it stands beside its source and, where there is a compiler, as that makes it. */
const MADE = ARCHITECTURES.flatMap((arch) => [
  { arch, is_compiled: false },
  ...(compilerVersion(arch) === null ? [] : [{ arch, is_compiled: true }]),
]);

describe.each(MADE)('the init for $arch, compiled here: $is_compiled', ({ arch, is_compiled }) => {
  /** The command line of the init, ahead of its argument. */
  const init = () => {
    const path = join(scratchFolder(), 'init');
    if (is_compiled) compileInit(arch, path);
    else writeFileSync(path, initProgram(arch), { mode: 0o755 });
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

  it.skipIf(process.getuid?.() !== 0)('reaps what its daemon leaves', () => {
    const orphans = '(sleep 0.01 &) ; (sleep 0.02 &) ; (exit 3 &)';
    // As long as an ended process of the namespace is there; the last state is the daemon's own.
    const daemon = `${orphans}; until ! grep -q "^State:.Z" /proc/[0-9]*/status; do sleep 0.01; done; exit 4`;
    const args = ['--pid', '--fork', '--mount-proc', 'sh', '-c', `sh -c '${daemon}' & exec ${init()} $!`];
    expect(spawnSync('unshare', args, { timeout: 60_000 }).status).toBe(4);
  });
});
