import { execFile } from 'node:child_process';

/** What a program needs of the environment: it is found where an administrator's programs are, and speaks English. */
const ENVIRONMENT = { PATH: '/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C' };
const TIMEOUT_MS = 10_000;
const OUTPUT_MAX_BYTES = 16 * 1024 * 1024;

/** A program of the system that failed. */
export class ProgramError extends Error {
  /** What it wrote to stderr. */
  readonly stderr: string;

  constructor(command: string, reason: string, stderr: string) {
    super(`${command}: ${stderr.trim() || reason}`);
    this.stderr = stderr;
  }
}

/** Runs a program to its end with `stdin`; resolves with what it wrote to stdout. Rejects with ProgramError. */
export function runProgram(command: readonly string[], stdin = ''): Promise<string> {
  const [program = '', ...args] = command;
  return new Promise((resolve, reject) => {
    const options = { env: ENVIRONMENT, timeout: TIMEOUT_MS, maxBuffer: OUTPUT_MAX_BYTES };
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      if (error) reject(new ProgramError(program, error.message, stderr));
      else resolve(stdout);
    });
    // A program that does not read its input tells why by how it ends.
    child.stdin?.on('error', () => {});
    child.stdin?.end(stdin);
  });
}
