import { Client } from './api/client.ts';
import type { Context, ManagerContext, Terminal } from './context.ts';
import { EXIT, Failure } from './failure.ts';
import { findTarget, type ManagerTarget, type TargetOptions } from './settings/target.ts';
import { Output, OutputClosed } from './terminal/output.ts';

/** The options that every command takes. */
export interface GlobalOptions extends TargetOptions {
  json?: boolean | undefined;
}

/** How a command differs from the others. */
export interface CommandRules {
  /** The exit code of a failure, unless it is the failure's own. */
  exitCodeOf?: (failure: Failure) => number;
  /** What is run instead of the command where it goes to a manager; or why it does not go there. */
  through_manager?: ((context: ManagerContext) => Promise<number>) | string;
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
  return new Failure(EXIT.failed, is_of_answer ? `an answer was invalid: ${error.message}` : error.message);
}

/**
 * Runs a command against the daemon that options, environment and config file name, or against that of a sandbox through
 * the manager that they name; returns the program's exit code.
 */
export function runCommand(
  options: GlobalOptions,
  env: NodeJS.ProcessEnv,
  command: (context: Context) => Promise<number>,
  { exitCodeOf, through_manager }: CommandRules = {},
): Promise<number> {
  const connected = async (terminal: Terminal) => {
    const target = await findTarget(options, env);
    const client = new Client(target.address, target.token);
    if (target.of === 'daemon') return command({ ...terminal, client });
    if (typeof through_manager === 'string') throw notThrough(target, through_manager);
    const context = { ...terminal, client, sandbox: target.sandbox };
    if (through_manager) return through_manager(context);
    const { selectedSandbox } = await import('./manager/sandbox-id.ts');
    const sandbox_id = await selectedSandbox(context);
    return command({ ...terminal, client: client.below(`/sandboxes/${sandbox_id}`) });
  };
  return runLocalCommand(options, connected, exitCodeOf);
}

/** The failure of a command that does not go through a manager. */
export function notThrough({ address }: ManagerTarget, why: string): Failure {
  return new Failure(
    EXIT.usage,
    `${why}; it does not go through the manager at ${address.shown}; --url names a daemon`,
  );
}

/** Runs a command against the manager that options, environment and config file name; returns the program's exit code. */
export function runManagerCommand(
  options: GlobalOptions,
  env: NodeJS.ProcessEnv,
  command: (context: ManagerContext) => Promise<number>,
): Promise<number> {
  return runLocalCommand(options, async (terminal) => {
    const target = await findTarget(options, env, true);
    if (target.of === 'daemon') throw new Failure(EXIT.usage, 'this needs a manager');
    return command({
      ...terminal,
      client: new Client(target.address, target.token),
      sandbox: target.sandbox,
    });
  });
}

/** Aborts at the first SIGINT, SIGTERM or SIGHUP, with its name as the reason; a second one ends the program at once. */
export function interruption(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => controller.abort(signal));
  return controller.signal;
}
