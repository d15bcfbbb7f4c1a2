import { InvalidArgumentError } from 'commander';
import type { CommandRules, DaemonCommand } from '../src/ctl/command.ts';
import type { Context, ManagerContext, Terminal } from '../src/ctl/context.ts';
import { parseDuration } from '../src/ctl/terminal/quantity.ts';

/** Runs commands, each with a daemon, a manager or neither, and sets the program's exit code. */
export interface CommandRunner {
  withDaemon(
    command: DaemonCommand | ((context: Context) => Promise<number>),
    rules?: CommandRules,
  ): Promise<void>;
  withManager(command: (context: ManagerContext) => Promise<number>): Promise<void>;
  withoutDaemon(command: (terminal: Terminal) => Promise<number>): Promise<void>;
}

/** The option of what prints content of the sandbox. */
export const RAW: [flags: string, description: string] = [
  '--raw',
  'on a terminal too, print what it would act upon; without it that is escaped, but for colours',
];

/** Adds one `NAME=VALUE` to the variables given before it. */
export function environmentEntry(text: string, before: Record<string, string> = {}): Record<string, string> {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError('It must be NAME=VALUE.');
  return { ...before, [name]: value };
}

/** A duration in ms. */
export function durationArgument(text: string): number {
  const duration_ms = parseDuration(text);
  if (duration_ms !== null) return duration_ms;
  throw new InvalidArgumentError('It must be a duration such as 500ms, 30s, 5m or 1h.');
}

/** A timeout in ms, more than 0. */
export function timeout(text: string): number {
  const timeout_ms = durationArgument(text);
  if (timeout_ms > 0) return timeout_ms;
  throw new InvalidArgumentError('It must be a duration such as 500ms, 30s, 5m or 1h.');
}
