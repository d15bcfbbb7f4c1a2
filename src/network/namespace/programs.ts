import { execFile } from 'node:child_process';

/** The environment of the programs: the administrator's search path, and messages in English. */
const ENVIRONMENT = { PATH: '/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C' };
const TIMEOUT_MS = 10_000;
const OUTPUT_MAX_BYTES = 16 * 1024 * 1024;

/** A system program that failed. */
export class ProgramError extends Error {
  /** Its output on stderr. */
  readonly stderr: string;

  constructor(command: string, reason: string, stderr: string) {
    super(`${command}: ${stderr.trim() || reason}`);
    this.stderr = stderr;
  }
}

/** Runs a program to its end with `stdin`; resolves with its stdout. Rejects with ProgramError. */
export function runProgram(command: readonly string[], stdin = ''): Promise<string> {
  const [program = '', ...args] = command;
  return new Promise((resolve, reject) => {
    const options = { env: ENVIRONMENT, timeout: TIMEOUT_MS, maxBuffer: OUTPUT_MAX_BYTES };
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      if (error) reject(new ProgramError(program, error.message, stderr));
      else resolve(stdout);
    });
    // If the program does not read its input, its exit status says why.
    child.stdin?.on('error', () => {});
    child.stdin?.end(stdin);
  });
}
