import { SandboxdError } from '../client/error.ts';
import { daemonAt, managerAt } from './api/clients.ts';
import type { Context, DaemonContext, ManagerContext, Terminal } from './context.ts';
import { EXIT, Failure } from './failure.ts';
import { type DaemonTarget, findTarget, type ManagerTarget, type TargetOptions } from './settings/target.ts';
import { Output, OutputClosed } from './terminal/output.ts';

/** The options that every command takes. */
export interface GlobalOptions extends TargetOptions {
  json?: boolean | undefined;
}

/** How a command differs from the others. */
export interface CommandRules {
  /** The exit code of a failure, unless it is the failure's own. */
  exitCodeOf?: (failure: Failure) => number;
}

/** A command of a daemon's own routes, which no manager passes on. */
export interface DaemonCommand {
  run: (context: DaemonContext) => Promise<number>;
  /** What is run instead where it goes to a manager; or why it does not go there. */
  through_manager: ((context: ManagerContext) => Promise<number>) | string;
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
    const failure = failureOf(error as Error);
    await err.line(`sandboxctl: ${failure.message}`).catch(() => {});
    return exitCodeOf(failure);
  }
}

/** An error as its one line and exit code. What no code expects is of an answer in the wrong shape, or of the platform. */
function failureOf(error: Error): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof SandboxdError) {
    const exit_code = error.code === 'unreachable' ? EXIT.unreachable : EXIT.failed;
    return new Failure(exit_code, error.message, error);
  }
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
  command: DaemonCommand | ((context: Context) => Promise<number>),
  { exitCodeOf }: CommandRules = {},
): Promise<number> {
  const connected = async (terminal: Terminal) => {
    const target = await findTarget(options, env);
    const run = typeof command === 'function' ? command : command.run;
    if (target.of === 'daemon') return run({ ...terminal, ...daemonContext(target) });
    const context = { ...terminal, ...managerContext(target) };
    const { manager } = context;
    if (typeof command === 'object') {
      const { through_manager } = command;
      if (typeof through_manager === 'string') throw notThrough(target, through_manager);
      return through_manager(context);
    }
    const { selectedSandbox } = await import('./manager/sandbox-id.ts');
    const sandbox = manager.sandbox(await selectedSandbox(context));
    return command({ ...terminal, sandbox, shown: target.address.shown });
  };
  return runLocalCommand(options, connected, exitCodeOf);
}

function daemonContext({ address, token }: DaemonTarget): Omit<DaemonContext, keyof Terminal> {
  const { daemon, link } = daemonAt(address, token);
  return { daemon, link, sandbox: daemon.sandbox, shown: address.shown };
}

function managerContext({ address, token, sandbox }: ManagerTarget): Omit<ManagerContext, keyof Terminal> {
  return { manager: managerAt(address, token), sandbox_id: sandbox };
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
    return command({ ...terminal, ...managerContext(target) });
  });
}

/** Aborts at the first SIGINT, SIGTERM or SIGHUP, with its name as the reason; a second one ends the program at once. */
export function interruption(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => controller.abort(signal));
  return controller.signal;
}
