import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { RunningProgram } from '../running-program.ts';

/** The program's file, for Node. */
export const SANDBOXCTL = fileURLToPath(new URL('../../../bin/sandboxctl.ts', import.meta.url));

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** A running `sandboxctl`: what it has written so far, and how to end it. */
export interface Running {
  child: ChildProcessWithoutNullStreams;
  stdout(): string;
  stderr(): string;
  /** Resolves once stdout and stderr together match. */
  wrote(pattern: RegExp): Promise<RegExpExecArray>;
  /** Resolves when it has ended, by itself or by this signal. */
  ended(signal?: NodeJS.Signals): Promise<Ended>;
}

/** Starts `sandboxctl` with nothing of the test's own environment but PATH; `merged`: its stderr goes where stdout goes. */
export function start(args: string[], env: NodeJS.ProcessEnv = {}, { merged = false } = {}): Running {
  const command = [process.execPath, SANDBOXCTL, ...args];
  const program = new RunningProgram(
    merged ? ['/bin/sh', '-c', 'exec "$@" 2>&1', 'sh', ...command] : command,
    {
      stdin: 'pipe',
      env: { PATH: process.env.PATH, ...env },
      extendEnv: false,
    },
  );
  return {
    child: program.child as ChildProcessWithoutNullStreams,
    stdout: () => program.stdout,
    stderr: () => program.stderr,
    wrote: (pattern) => program.wrote(pattern),
    async ended(signal) {
      if (signal) program.kill(signal);
      const { code } = await program.ended;
      return { code, stdout: program.stdout, stderr: program.stderr };
    },
  };
}

/** Runs `sandboxctl` to its end. */
export function run(
  args: string[],
  env: NodeJS.ProcessEnv = {},
  stdin: string | Buffer = '',
): Promise<Ended> {
  const running = start(args, env);
  running.child.stdin.end(stdin);
  return running.ended();
}
