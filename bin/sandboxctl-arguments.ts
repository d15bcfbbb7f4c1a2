import { InvalidArgumentError } from 'commander';
import type { Context, Terminal } from '../src/ctl/context.ts';
import type { Failure } from '../src/ctl/failure.ts';
import { parseDuration } from '../src/ctl/terminal/quantity.ts';

/** Runs commands, each with or without a daemon, and sets the program's exit code. */
export interface CommandRunner {
  /** `exitCodeOf`: the exit code of a failure, unless it is the failure's own. */
  withDaemon(
    command: (context: Context) => Promise<number>,
    exitCodeOf?: (failure: Failure) => number,
  ): Promise<void>;
  withoutDaemon(command: (terminal: Terminal) => Promise<number>): Promise<void>;
}

/** Adds one `NAME=VALUE` to the variables given before it. */
export function environmentEntry(text: string, before: Record<string, string> = {}): Record<string, string> {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError('It must be NAME=VALUE.');
  return { ...before, [name]: value };
}

/** A timeout in ms, more than 0. */
export function timeout(text: string): number {
  const timeout_ms = parseDuration(text);
  if (timeout_ms) return timeout_ms;
  throw new InvalidArgumentError('It must be a duration such as 500ms, 30s, 5m or 1h.');
}
