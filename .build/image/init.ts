import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const HERE = import.meta.dirname;

/** A compiler for one architecture. `version`: the one that made the program beside this file. */
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
 * The init of a sandbox whose root persists, as it stands beside `init.c`, its source: an image is built without a compiler.
 * Throws if `arch` is not supported.
 */
export function initProgram(arch: string): Buffer {
  const path = join(HERE, `init-${arch}`);
  if (!existsSync(path)) throw new Error(`${arch} is not supported`);
  return readFileSync(path);
}

/** The version of the compiler for `arch`, with who packaged it; null where there is none. */
export function compilerVersion(arch: string): string | null {
  const { stdout, status } = spawnSync(COMPILERS[arch]?.name ?? '', ['--version'], { encoding: 'utf8' });
  return status === 0 ? (/\(.*/.exec(stdout)?.[0] ?? '') : null;
}

/** Makes the program from its source. Throws what the compiler says. */
export function compileInit(arch: string, path: string): void {
  const { name = '', flags = [] } = COMPILERS[arch] ?? {};
  const args = [...FLAGS, ...flags, '-o', path, join(HERE, 'init.c')];
  const { status, stderr } = spawnSync(name, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
}

// `node .build/image/init.ts` makes both again.
if (import.meta.main)
  for (const arch of Object.keys(COMPILERS)) compileInit(arch, join(HERE, `init-${arch}`));
