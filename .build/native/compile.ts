import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const HERE = import.meta.dirname;
const ROOT = join(HERE, '../..');

/** A compiler for one architecture. `version`: the one that made the programs that are kept. */
interface Compiler {
  name: string;
  version: string;
  flags: string[];
}

/** Debian's compilers, with the defaults switched off that other distributions set in another way. */
export const COMPILERS: Record<string, Compiler> = {
  x64: {
    name: 'x86_64-linux-gnu-gcc',
    version: '(Debian 12.2.0-14+deb12u1) 12.2.0',
    flags: ['-fcf-protection=none'],
  },
  arm64: {
    name: 'aarch64-linux-gnu-gcc',
    version: '(Debian 12.2.0-14) 12.2.0',
    flags: ['-mbranch-protection=none'],
  },
};

/** No C library, and nothing in the file that differs from one machine to another. */
const FLAGS = [
  '-Os',
  '-std=c11',
  '-Wall',
  '-Wextra',
  '-Werror',
  '-ffreestanding',
  '-fno-pie',
  '-no-pie',
  '-fno-ident',
  '-fno-stack-protector',
  '-fno-unwind-tables',
  '-fno-asynchronous-unwind-tables',
  '-static',
  '-nostdlib',
  '-s',
  '-Wl,--build-id=none',
  '-Wl,-z,noseparate-code',
  '-Wl,-z,norelro',
  '-Wl,-z,max-page-size=65536',
];

/**
 * The programs that are kept as machine code beside their sources, as `<path>-<arch>` beside `<path>.c`: a build needs no
 * compiler.
 */
const NATIVE_PROGRAMS = { init: '.build/image/init', launcher: 'src/base/linux/launcher' } as const;

/** The name of a program that is kept as machine code. */
export type NativeProgram = keyof typeof NATIVE_PROGRAMS;

/** All of them. */
export const NATIVE_NAMES = Object.keys(NATIVE_PROGRAMS) as NativeProgram[];

/** A program as it is kept. Throws if `arch` is not supported. */
export function nativeProgram(name: NativeProgram, arch: string): Buffer {
  const path = kept(name, arch);
  if (!existsSync(path)) throw new Error(`${arch} is not supported`);
  return readFileSync(path);
}

/** The version of the compiler for `arch`, with who packaged it; null where there is none. */
export function compilerVersion(arch: string): string | null {
  const { stdout, status } = spawnSync(COMPILERS[arch]?.name ?? '', ['--version'], { encoding: 'utf8' });
  return status === 0 ? (/\(.*/.exec(stdout)?.[0] ?? '') : null;
}

/** Makes the program from its source. Throws what the compiler says. */
export function compileNative(program: NativeProgram, arch: string, path = kept(program, arch)): void {
  const { name = '', flags = [] } = COMPILERS[arch] ?? {};
  const source = join(ROOT, `${NATIVE_PROGRAMS[program]}.c`);
  const args = [...FLAGS, ...flags, '-I', HERE, '-o', path, source];
  const { status, stderr } = spawnSync(name, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
}

function kept(name: NativeProgram, arch: string): string {
  return join(ROOT, `${NATIVE_PROGRAMS[name]}-${arch}`);
}

// `node .build/native/compile.ts` makes all of them again.
if (import.meta.main)
  for (const name of NATIVE_NAMES) for (const arch of Object.keys(COMPILERS)) compileNative(name, arch);
