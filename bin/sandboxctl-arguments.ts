import { InvalidArgumentError } from 'commander';
import type { Context, Terminal } from '../src/ctl/context.ts';
import { parseDuration } from '../src/ctl/terminal/quantity.ts';

/** Runs commands, each with or without a daemon, and sets the program's exit code. */
export interface CommandRunner {
  withDaemon(command: (context: Context) => Promise<number>): Promise<void>;
  withoutDaemon(command: (terminal: Terminal) => Promise<number>): Promise<void>;
}

/** A parser of integers within these bounds, both inclusive. */
export function integer(least: number, most = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
    throw new InvalidArgumentError(`It must be an integer ${range}.`);
  };
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

/** A text of at least one character. */
export function notEmpty(text: string): string {
  if (text === '') throw new InvalidArgumentError('It must not be empty.');
  return text;
}
