import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { eventually } from '../eventually.ts';

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
  const [file = '', ...rest] = merged ? ['/bin/sh', '-c', 'exec "$@" 2>&1', 'sh', ...command] : command;
  const child = spawn(file, rest, { env: { PATH: process.env.PATH, ...env } });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const end = new Promise<Ended>((resolve) => {
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
  return {
    child,
    stdout: () => stdout,
    stderr: () => stderr,
    wrote: (pattern) =>
      eventually(
        () => {
          const match = pattern.exec(stdout + stderr);
          if (!match) throw new Error(`${pattern} is not in ${JSON.stringify(stdout + stderr)}`);
          return match;
        },
        { timeout: 60_000, interval: 10 },
      ),
    ended(signal) {
      if (signal) child.kill(signal);
      return end;
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
  // It need not read all, or anything, before it ends.
  running.child.stdin.on('error', () => {}).end(stdin);
  return running.ended();
}
