import { OptionError } from '../contract/errors.ts';

/** What an option's value may be. */
export interface OptionType<Value> {
  /** The value of a text; null if it is not accepted. */
  parse(text: string): Value | null;
  /** What is accepted, as the rest of a sentence: "must be …". */
  accepted: string;
}

/** One option; `name` is its key in a config file, with dashes its flag, and in capitals its environment variable. */
export interface OptionDefinition {
  name: string;
  /** The placeholder of its value in the help; null for a switch. */
  value: string | null;
  description: string;
  is_list?: boolean;
}

/** The values of one source: texts, lists of them for repeatable options, `true` or a text for switches. */
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

/** A text of at least one character. */
export const FILLED_OPTION: OptionType<string> = {
  accepted: 'must not be empty',
  parse: (text) => (text === '' ? null : text),
};

/** The given values by option, parsed on request. Every method throws OptionError. */
export class OptionValues<Name extends string> {
  readonly #given: Given;

  /** `sources`: the first one that has an option decides. */
  constructor(...sources: Given[]) {
    this.#given = Object.assign({}, ...sources.reverse());
  }

  /** A value; that of the text `standard` if not given. */
  read<Value>(name: Name, standard: string, type: OptionType<Value>): Value {
    const value = type.parse(this.#text(name) ?? standard);
    if (value === null) throw badOption(name, type.accepted);
    return value;
  }

  /** A value, or null if not given. */
  optional<Value>(name: Name, type: OptionType<Value>): Value | null {
    return this.#text(name) === null ? null : this.read(name, '', type);
  }

  /** The values of a repeatable option, which may also be separated by commas or spaces. */
  list<Value>(name: Name, { parse, accepted }: OptionType<Value>): Value[] {
    const value = this.#given[name] ?? [];
    const texts = typeof value === 'string' ? value.split(/[\s,]+/).filter(Boolean) : value;
    if (!Array.isArray(texts)) throw badOption(name, accepted);
    return texts.map((text) => {
      const entry = parse(String(text));
      if (entry === null) throw badOption(name, `${accepted}, not ${JSON.stringify(text)}`);
      return entry;
    });
  }

  #text(name: Name): string | null {
    const value = this.#given[name];
    if (value === undefined || value === null) return null;
    if (typeof value === 'object') throw badOption(name, 'must be a single value');
    return String(value);
  }
}

/** The error for an invalid option, by its `name`. */
export function badOption(name: string, problem: string): OptionError {
  return new OptionError({ field: `--${name.replaceAll('_', '-')}`, problem });
}
