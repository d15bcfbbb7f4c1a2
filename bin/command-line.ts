import { type Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { sleep, workingClock } from '../src/base/clock.ts';
import { systemErrorWords } from '../src/base/linux/errno.ts';
import {
  FILLED_OPTION,
  flagOf,
  type Given,
  integerOption,
  type OptionRow,
  type OptionType,
  variableOf,
} from '../src/base/options.ts';
import { StartError } from '../src/contract/errors.ts';

/** Work in the thread pool, for which a normal exit waits. */
const POOL_WORK = /^(FSReq|GetAddrInfoReq)/;
/** How long the end waits for the thread pool, such as for the last lines of the log, in steps. */
const POOL_STEP_MS = 20;
const POOL_STEPS = 50;

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

/** The option of a row, with its default in the help. Its texts are checked later, by `readOptions`. */
export function optionOf(row: OptionRow): Option {
  const { value, description, standard, names_standard } = row;
  const is_noted = value !== null && standard !== undefined && !names_standard;
  return describedOption(row, is_noted ? `${description} (default: ${standard})` : description);
}

/** The same with its variable in the help, and checked by commander, which then names that variable. */
export function checkedOptionOf(row: OptionRow, env_prefix: string): Option {
  const { name, value, description, type, standard, is_list, has_no_variable } = row;
  const option = describedOption(row, description);
  if (!has_no_variable) option.env(variableOf(env_prefix, name));
  if (value === null || is_list) return option;
  if (standard !== undefined) option.default(standard, JSON.stringify(type.parse(standard)));
  if (type.choices) return option.choices(type.choices);
  const parse = argument(type);
  return option.argParser((text: string) => {
    parse(text);
    return text;
  });
}

function describedOption({ name, value, is_list, separator }: OptionRow, description: string): Option {
  const option = new Option(value === null ? flagOf(name) : `${flagOf(name)} <${value}>`, description);
  if (!is_list) return option;
  return option.argParser((text: string, before: string[] = []) => [
    ...before,
    ...(separator === undefined ? [text] : text.split(separator).filter(Boolean)),
  ]);
}

/** The values that a command was given by option, as texts; defaults are not among them. */
export function givenValues(command: Command): Given {
  const given: Given = {};
  for (const option of command.options) {
    const attribute = option.attributeName();
    if (!['cli', 'env'].includes(command.getOptionValueSource(attribute) ?? '')) continue;
    given[option.name().replaceAll('-', '_')] = command.getOptionValue(attribute);
  }
  return given;
}

/** What has been printed and may not have arrived. */
const printing: Promise<void>[] = [];

/** Prints on stdout; `printed` says what became of it. */
export function print(text: string): void {
  // The write reports its own error; without a listener the same error would also end the program.
  if (printing.length === 0) process.stdout.on('error', ignore);
  printing.push(
    new Promise((resolve, reject) => {
      process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
    }),
  );
}

/**
 * The program's exit code once all that was printed has arrived: 1, and one line on stderr, where it cannot, such as on a
 * full disk. A reader that has closed its pipe has read what it wanted.
 */
export async function printed(program: string, exit_code: number): Promise<number> {
  try {
    await Promise.all(printing);
    return exit_code;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EPIPE') return exit_code;
    printError(failureLine(program, `cannot write to stdout: ${systemErrorWords(code) ?? message}`));
    return 1;
  }
}

/** Prints on stderr, as far as it can be written to: the exit code says the same. */
export function printError(text: string): void {
  process.stderr.off('error', ignore).on('error', ignore).write(text);
}

function ignore(): void {}

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
  printError(failureLine(program, (error as Error).message));
  if (error instanceof StartError) return error.exit_code;
  return error instanceof CommanderError ? 2 : 1;
}

/**
 * Ends the program with this exit code. A normal exit waits for each thread and for the reader of the log: if the kernel
 * holds one up for a second, the program ends without it.
 */
export async function endProgram(exit_code: number): Promise<never> {
  for (let step = 0; isPoolBusy() && step < POOL_STEPS; step++) await sleep(workingClock, POOL_STEP_MS);
  if (isPoolBusy()) {
    const { exitAtOnce } = await import('../src/base/linux/libc.ts');
    exitAtOnce(exit_code);
  }
  process.exit(exit_code);
}

function isPoolBusy(): boolean {
  return process.getActiveResourcesInfo().some((kind) => POOL_WORK.test(kind));
}
