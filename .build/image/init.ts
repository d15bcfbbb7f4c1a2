import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const HERE = import.meta.dirname;

/** Debian's compilers of both targets, and the version that made the programs beside this file. */
const COMPILERS: Record<string, string> = { x64: 'x86_64-linux-gnu-gcc', arm64: 'aarch64-linux-gnu-gcc' };
export const MADE_BY = '12.2.0';

/** No C library, and nothing in the file that differs from one machine to another. */
const FLAGS = [
  ...['-Os', '-std=c11', '-Wall', '-Wextra', '-Werror', '-ffreestanding', '-fno-pie', '-fno-ident'],
  ...['-fno-stack-protector', '-fno-asynchronous-unwind-tables', '-static', '-nostdlib', '-s'],
  ...['-Wl,--build-id=none', '-Wl,-z,noseparate-code', '-Wl,-z,max-page-size=65536'],
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

/** The version of the compiler for `arch`; null where there is none. */
export function compilerVersion(arch: string): string | null {
  const { stdout, status } = spawnSync(COMPILERS[arch] ?? '', ['-dumpfullversion'], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : null;
}

/** Makes the program from its source. Throws what the compiler says. */
export function compileInit(arch: string, path: string): void {
  const args = [...FLAGS, '-o', path, join(HERE, 'init.c')];
  const { status, stderr } = spawnSync(COMPILERS[arch] ?? '', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
}

// `node .build/image/init.ts` makes both again.
if (import.meta.main)
  for (const arch of Object.keys(COMPILERS)) compileInit(arch, join(HERE, `init-${arch}`));
