import { Client } from './api/client.ts';
import { type ConnectionOptions, findDaemon } from './api/config.ts';
import type { Context, Terminal } from './context.ts';
import { EXIT, Failure } from './failure.ts';
import { Output, OutputClosed } from './terminal/output.ts';

/** The options that every command takes. */
export interface GlobalOptions extends ConnectionOptions {
  json?: boolean | undefined;
}

/**
 * Runs a command that requires no daemon; returns the program's exit code. A failure is one line on stderr, and the exit
 * code is what `exitCodeOf` makes of it: by default its own.
 */
export async function runLocalCommand(
  options: GlobalOptions,
  command: (terminal: Terminal) => Promise<number>,
  exitCodeOf: (failure: Failure) => number = ({ exit_code }) => exit_code,
): Promise<number> {
  const err = new Output(process.stderr);
  try {
    return await command({ out: new Output(process.stdout), err, json: options.json ?? false });
  } catch (error) {
    // Ends like any program in a pipe whose reader has closed it.
    if (error instanceof OutputClosed) return EXIT.ok;
    const failure = error instanceof Failure ? error : unexpected(error as Error);
    await err.line(`sandboxctl: ${failure.message}`).catch(() => {});
    return exitCodeOf(failure);
  }
}

/** An error that no code expects: of an answer in the wrong shape, or of the platform. */
function unexpected(error: Error): Failure {
  const is_of_answer =
    error instanceof TypeError || error instanceof SyntaxError || error instanceof RangeError;
  return new Failure(
    EXIT.failed,
    is_of_answer ? `the daemon sent an invalid answer: ${error.message}` : error.message,
  );
}

/** Runs a command against the daemon that the options or the environment name; returns the program's exit code. */
export function runCommand(
  options: GlobalOptions,
  env: NodeJS.ProcessEnv,
  command: (context: Context) => Promise<number>,
  exitCodeOf?: (failure: Failure) => number,
): Promise<number> {
  const connected = (terminal: Terminal) => {
    const { address, token } = findDaemon(options, env);
    return command({ ...terminal, client: new Client(address, token) });
  };
  return runLocalCommand(options, connected, exitCodeOf);
}

/** Aborts at the first SIGINT or SIGTERM; a second one ends the program at once. */
export function interruption(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => controller.abort());
  return controller.signal;
}
