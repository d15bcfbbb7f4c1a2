import { OptionError } from '../contract/errors.ts';

/** What an option's value may be. */
export interface OptionType<Value> {
  /** The value of a text; null if it is not accepted. */
  parse(text: string): Value | null;
  /** What is accepted, as the rest of a sentence: "must be …". */
  accepted: string;
  /** All values, if they are a few words. */
  choices?: readonly string[];
}

/**
 * One option of a program, from which its flag, its environment variable, its help, its checks and its place in the
 * configuration are made.
 */
export interface OptionRow<Value = unknown> {
  /** Its key in the configuration and in a config file; with dashes its flag, and in capitals its environment variable. */
  name: string;
  /** The placeholder of its value in the help; null for a switch. */
  value: string | null;
  description: string;
  type: OptionType<Value>;
  /** The text that stands for it if it is not given; without one its value is then null, or an empty list. */
  standard?: string;
  /** The description names the default itself. */
  names_standard?: boolean;
  /** It may be given several times. */
  is_list?: boolean;
  /** What separates values in one text. Without it commas and spaces do, but not on the command line. */
  separator?: string;
  /** The environment has no variable of its name, or one that is read elsewhere. */
  has_no_variable?: boolean;
}

type OptionValue<Row> = Row extends { type: OptionType<infer Value> }
  ? Row extends { is_list: true }
    ? Value[]
    : Row extends { standard: string }
      ? Value
      : Value | null
  : never;

/** The values of a table of options by name. */
export type OptionValues<Rows extends readonly OptionRow[]> = {
  readonly [Row in Rows[number] as Row['name']]: OptionValue<Row>;
};

/** The values of one source by option: texts, lists of them for repeatable options, `true` or a text for switches. */
export type Given = Partial<Record<string, unknown>>;

/** An integer from `min` to `max`, both inclusive. */
export function integerOption(min: number, max = Number.MAX_SAFE_INTEGER): OptionType<number> {
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  return {
    accepted: `must be an integer ${range}`,
    parse(text) {
      const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
      return number >= min && number <= max ? number : null;
    },
  };
}

/** One of these values. */
export function choiceOption<Value extends string>(values: readonly Value[]): OptionType<Value> {
  return {
    accepted: `must be one of ${values.join(', ')}`,
    choices: values,
    parse: (text) => values.find((value) => value === text) ?? null,
  };
}

/** A switch in words, such as `on`, `no` or `1`. */
export const SWITCH_OPTION: OptionType<boolean> = {
  accepted: 'must be true or false',
  parse(text) {
    if (/^(1|true|yes|on)$/i.test(text)) return true;
    return /^(0|false|no|off)$/i.test(text) ? false : null;
  },
};

/** Any text. */
export const TEXT_OPTION: OptionType<string> = { accepted: 'must be a text', parse: (text) => text };

/** A text of at least one character. */
export const FILLED_OPTION: OptionType<string> = {
  accepted: 'must not be empty',
  parse: (text) => (text === '' ? null : text),
};

/**
 * Reads the values of a table of options; the first of `sources` that has an option decides. Throws OptionError that names
 * the first option with a value that is not accepted.
 */
export function readOptions<const Rows extends readonly OptionRow[]>(
  rows: Rows,
  ...sources: Given[]
): OptionValues<Rows> {
  const given: Given = Object.assign({}, ...sources.reverse());
  const values = rows.map((row) => [row.name, row.is_list ? listOf(row, given) : singleOf(row, given)]);
  return Object.freeze(Object.fromEntries(values)) as OptionValues<Rows>;
}

function singleOf({ name, type, standard }: OptionRow, given: Given): unknown {
  const text = given[name] ?? standard;
  if (text === undefined) return null;
  if (typeof text === 'object') throw badOption(name, 'must be a single value');
  const value = type.parse(String(text));
  if (value === null) throw badOption(name, type.accepted);
  return value;
}

function listOf({ name, type: { parse, accepted }, separator }: OptionRow, given: Given): unknown[] {
  const value = given[name] ?? [];
  const texts = typeof value === 'string' ? value.split(separator ?? /[\s,]+/).filter(Boolean) : value;
  if (!Array.isArray(texts)) throw badOption(name, accepted);
  return texts.map((text) => {
    const entry = parse(String(text));
    if (entry === null) throw badOption(name, `${accepted}, not ${JSON.stringify(text)}`);
    return entry;
  });
}

/** The flag of an option, such as `--state-dir`. */
export function flagOf(name: string): string {
  return `--${name.replaceAll('_', '-')}`;
}

/** The environment variable of an option, whose prefix is its program's. */
export function variableOf(prefix: string, name: string): string {
  return prefix + name.toUpperCase();
}

/** The error for an invalid option, by its `name`. */
export function badOption(name: string, problem: string): OptionError {
  return new OptionError({ field: flagOf(name), problem });
}
