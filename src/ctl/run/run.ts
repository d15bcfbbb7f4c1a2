import { Client } from '../api/client.ts';
import { type DaemonOptions, findDaemon } from '../api/config.ts';
import type { Context, Terminal } from '../context.ts';
import { EXIT, Failure } from '../failure.ts';
import { Output, OutputClosed } from '../terminal/output.ts';

export interface GlobalOptions extends DaemonOptions {
  json?: boolean | undefined;
}

/** Runs a command that needs no daemon and returns the program's exit code; a failure is one line on stderr. */
export async function runLocal(
  options: GlobalOptions,
  command: (terminal: Terminal) => Promise<number>,
): Promise<number> {
  const err = new Output(process.stderr);
  try {
    return await command({ out: new Output(process.stdout), err, json: options.json ?? false });
  } catch (error) {
    // As for any program in a pipe whose reader has seen enough.
    if (error instanceof OutputClosed) return EXIT.ok;
    const failure = error instanceof Failure ? error : odd(error as Error);
    await err.line(`sandboxctl: ${failure.message}`).catch(() => {});
    return failure.exit_code;
  }
}

/** What is not foreseen comes of an answer that is none of a daemon's, or of the platform. */
function odd(error: Error): Failure {
  const is_of_answer =
    error instanceof TypeError || error instanceof SyntaxError || error instanceof RangeError;
  return new Failure(
    EXIT.failed,
    is_of_answer ? `the answer makes no sense: ${error.message}` : error.message,
  );
}

/** Runs a command against the daemon that options and environment name. */
export function run(
  options: GlobalOptions,
  env: NodeJS.ProcessEnv,
  command: (context: Context) => Promise<number>,
): Promise<number> {
  return runLocal(options, (terminal) => {
    const { address, token } = findDaemon(options, env);
    return command({ ...terminal, client: new Client(address, token) });
  });
}

/** Aborts at the first SIGINT or SIGTERM; the second ends the program as it does any other. */
export function interruption(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => controller.abort());
  return controller.signal;
}
