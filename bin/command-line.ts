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

/** Prints an error on one line of stderr; returns the program's exit code. */
export function reportFailure(program: string, error: unknown): number {
  if (error instanceof CommanderError && error.exitCode === 0) return 0;
  const text = (error as Error).message.replace(/^error: /, '').replaceAll(/\s*\n\s*/g, ' ');
  process.stderr.write(`${program}: ${text}\n`);
  if (error instanceof StartError) return error.exit_code;
  return error instanceof CommanderError ? 2 : 1;
}
