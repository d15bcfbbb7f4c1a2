import { CommanderError, InvalidArgumentError } from 'commander';
import { FILLED_OPTION, integerOption, type OptionType } from '../src/base/options.ts';
import { StartError } from '../src/contract/errors.ts';

/** The parser of an option or argument of this type. */
export function argument<Value>({ parse, accepted }: OptionType<Value>): (text: string) => Value {
  return (text) => {
    const value = parse(text);
    if (value === null) throw new InvalidArgumentError(`It ${accepted}.`);
    return value;
  };
}

/** A parser of integers within these bounds, both inclusive. */
export function integer(least: number, most?: number): (text: string) => number {
  return argument(integerOption(least, most));
}

/** A parser of texts of at least one character. */
export const filled = argument(FILLED_OPTION);

/** An error as one line for stderr. */
export function failureLine(program: string, message: string): string {
  const text = message.replace(/^error: /, '').trim();
  return `${program}: ${text.replaceAll(/\s*\n\s*/g, ' ')}\n`;
}

/** Prints an error on one line of stderr; returns the program's exit code. */
export function reportFailure(program: string, error: unknown): number {
  if (error instanceof CommanderError && error.exitCode === 0) return 0;
  // The help of a command whose own command is missing has been printed.
  if (error instanceof CommanderError && error.code === 'commander.help') return 2;
  process.stderr.write(failureLine(program, (error as Error).message));
  if (error instanceof StartError) return error.exit_code;
  return error instanceof CommanderError ? 2 : 1;
}
