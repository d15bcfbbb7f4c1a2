import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';

/** Where `test/interop/tools.sh` installs Python programs. */
const INSTALLED = fileURLToPath(new URL('../../node_modules/.cache/interop', import.meta.url));

/** The programs and scripts of `test/interop`. */
export const INTEROP = fileURLToPath(new URL('../interop', import.meta.url));

/** The title of tests that need one of these programs, or `''` where it is there. */
export function missing(program: string): string {
  const is_there = existsSync(join(INSTALLED, 'requirements.txt')) && existsSync(installed(program));
  return is_there ? '' : ` (skipped: ${program} is not installed here)`;
}

/** The path of an installed program. */
export function installed(program: string): string {
  return join(INSTALLED, 'bin', program);
}

/** What an installed program prints; an error with all that it printed where it fails. */
export async function runInstalled(
  program: string,
  args: readonly string[],
  { cwd, env }: { cwd?: string; env?: Record<string, string> } = {},
): Promise<string> {
  return runProgram(installed(program), args, { cwd, env });
}

/** The same of any program. */
export async function runProgram(
  program: string,
  args: readonly string[],
  { cwd, env = {} }: { cwd?: string | undefined; env?: Record<string, string> | undefined } = {},
): Promise<string> {
  const { stdout, stderr } = await execa(program, args, {
    cwd,
    env: { PATH: process.env.PATH, HOME: cwd, LANG: 'C.UTF-8', ...env },
    extendEnv: false,
    stripFinalNewline: false,
  });
  return stdout + stderr;
}
