import { existsSync } from 'node:fs';
import { delimiter, resolve } from 'node:path';
import { execaSync } from 'execa';

/** Where programs are looked for: an administrator's, too. */
export const ADMIN_PATH = `${process.env.PATH ?? ''}:/usr/sbin:/sbin`;

/** Runs a program to its end and returns what it wrote; throws with all of it where it fails. */
export function runSync(...command: string[]): string {
  const [program = '', ...args] = command;
  return execaSync(program, args, { env: { PATH: ADMIN_PATH }, stripFinalNewline: false }).stdout;
}

/** Whether a program is there, and ends with 0. */
export function succeeds(...command: string[]): boolean {
  const [program = '', ...args] = command;
  const { failed } = execaSync(program, args, { env: { PATH: ADMIN_PATH }, stdio: 'ignore', reject: false });
  return !failed;
}

/** Those of these programs that are not installed. */
export function missingPrograms(names: readonly string[]): string[] {
  const folders = ADMIN_PATH.split(delimiter);
  return names.filter((name) => !folders.some((folder) => existsSync(resolve(folder, name))));
}
