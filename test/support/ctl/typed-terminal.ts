import { spawn } from '@lydell/node-pty';
import { onTestFinished } from 'vitest';
import { eventually } from '../eventually.ts';

/** A program at a terminal of its own, at which a test types. */
export interface TypedTerminal {
  type(keys: string): void;
  resize(columns: number, rows: number): void;
  /** Everything it has shown. */
  text(): string;
  /** Resolves once what it has shown matches. */
  shows(pattern: RegExp): Promise<void>;
  /** Its exit code, once it has ended. */
  ended: Promise<number>;
}

/** Starts a program with nothing of the test's own environment but PATH; it ends with the present test. */
export function atTerminal(program: string, args: string[], env: NodeJS.ProcessEnv): TypedTerminal {
  const pty = spawn(program, args, {
    cols: 80,
    rows: 24,
    env: { PATH: process.env.PATH, TERM: 'dumb', ...env } as Record<string, string>,
  });
  let text = '';
  let has_ended = false;
  pty.onData((data) => {
    text += data;
  });
  const ended = new Promise<number>((resolve) => {
    pty.onExit(({ exitCode }) => {
      has_ended = true;
      resolve(exitCode);
    });
  });
  onTestFinished(() => {
    if (!has_ended) pty.kill('SIGKILL');
  });
  return {
    ended,
    type: (keys) => pty.write(keys),
    resize: (columns, rows) => pty.resize(columns, rows),
    text: () => text,
    shows: (pattern) =>
      eventually(
        () => {
          if (!pattern.test(text)) throw new Error(`${pattern} is not in ${JSON.stringify(text)}`);
        },
        { timeout: 60_000, interval: 10 },
      ),
  };
}
