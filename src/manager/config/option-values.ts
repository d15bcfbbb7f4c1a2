import { resolve } from 'node:path';
import { OptionError } from '../../contract/errors.ts';
import type { Given, OptionName } from './options.ts';

/** The given values by option, parsed on request. Every method throws StartError with exit code 2. */
export class OptionValues {
  readonly #given: Given;

  constructor(given: Given) {
    this.#given = given;
  }

  /** A value, `standard` if not given; `parse` returns null for an invalid text, `accepted` completes the message. */
  read<Value>(
    name: OptionName,
    standard: string,
    parse: (text: string) => Value | null,
    accepted: string,
  ): Value {
    const text = this.#text(name) ?? standard;
    const value = parse(text);
    if (value === null) throw badOption(name, accepted);
    return value;
  }

  /** A value, or null if not given. */
  optional<Value>(name: OptionName, parse: (text: string) => Value | null, accepted: string): Value | null {
    return this.#text(name) === null ? null : this.read(name, '', parse, accepted);
  }

  /** The values of a repeatable option, which may also be separated by commas or spaces. */
  list<Value>(name: OptionName, parse: (text: string) => Value | null, accepted: string): Value[] {
    const value = this.#given[name] ?? [];
    const texts = typeof value === 'string' ? value.split(/[\s,]+/).filter(Boolean) : value;
    if (!Array.isArray(texts)) throw badOption(name, accepted);
    return texts.map((text) => {
      const entry = parse(String(text));
      if (entry === null) throw badOption(name, accepted);
      return entry;
    });
  }

  #text(name: OptionName): string | null {
    const value = this.#given[name];
    if (value === undefined || value === null) return null;
    if (typeof value === 'object') throw badOption(name, 'must be a single value');
    return String(value);
  }
}

/** `sqlite:<absolute path>` or a PostgreSQL URL; null for anything else. */
export function databaseUrl(text: string): string | null {
  const file = /^sqlite:(.+)$/.exec(text)?.[1];
  if (file !== undefined) return `sqlite:${resolve(file)}`;
  return /^postgres(ql)?:\/\//.test(text) && URL.canParse(text) ? text : null;
}

/** A `redis://` or `rediss://` URL; null for anything else. */
export function redisUrl(text: string): string | null {
  return /^rediss?:\/\//.test(text) && URL.canParse(text) ? text : null;
}

/** The host and port of `<host>:<port>`, an IPv6 host in brackets; null for anything else. */
export function address(text: string): [host: string, port: number] | null {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  return host === undefined || port > 65_535 ? null : [host, port];
}

/** An absolute path; null for an empty text. */
export function path(text: string): string | null {
  return text === '' ? null : resolve(text);
}

/** 1 to 64 of `A-Z a-z 0-9 _ - .`; null for anything else. */
export function label(text: string): string | null {
  return /^[A-Za-z0-9_.-]{1,64}$/.test(text) ? text : null;
}

/** A switch, such as `on`, `off`, `true` or `0`; null for anything else. */
export function onOff(text: string): boolean | null {
  if (/^(1|true|yes|on)$/i.test(text)) return true;
  return /^(0|false|no|off)$/i.test(text) ? false : null;
}

/** A parser of one of these values. */
export function choiceOf<Value extends string>(values: readonly Value[]): (text: string) => Value | null {
  return (text) => values.find((value) => value === text) ?? null;
}

/** A parser of integers from `min` to `max`. */
export function integerBetween(min: number, max: number): (text: string) => number | null {
  return (text) => {
    const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    return number >= min && number <= max ? number : null;
  };
}

/** The error for an invalid option, with exit code 2. */
export function badOption(name: OptionName, problem: string): OptionError {
  return new OptionError({ field: `--${name.replaceAll('_', '-')}`, problem });
}
