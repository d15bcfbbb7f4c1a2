import type { TargetOptions } from '../settings/target.ts';

/** What has been typed of a command, as far as completion needs it. */
export interface TypedWords {
  /** The command, and the one below it; empty where there is none yet. */
  command: string;
  below: string;
  /** How many arguments come before the word at the cursor. */
  argument: number;
  /** The word at the cursor, and the option whose value it is. */
  word: string;
  option: string | null;
  /** What of the word is not its value: `--option=`. */
  before: string;
  target: TargetOptions;
  user: string | undefined;
}

const TARGET_OPTIONS = ['--url', '--manager', '--sandbox', '--profile', '--token-file', '--state-dir'];

/** Understands the words of a command line after the program's name. `takesValue`: whether an option has a value. */
export function typedWords(words: readonly string[], takesValue: (flag: string) => boolean): TypedWords {
  const values = new Map<string, string>();
  const given: string[] = [];
  let option: string | null = null;
  for (const word of words.slice(0, -1)) {
    if (option !== null) values.set(option, word);
    const equals = word.startsWith('--') ? word.indexOf('=') : -1;
    if (option === null && equals > 0) values.set(word.slice(0, equals), word.slice(equals + 1));
    else if (option === null && !word.startsWith('-')) given.push(word);
    option = option === null && word.startsWith('-') && takesValue(word) ? word : null;
  }
  const last = words.at(-1) ?? '';
  const [, flag = null, value = last] = /^(--[a-z-]+)=(.*)$/s.exec(last) ?? [];
  const [url, manager, sandbox, profile, tokenFile, stateDir] = TARGET_OPTIONS.map((name) =>
    values.get(name),
  );
  const [command = '', ...rest] = given;
  const [below = ''] = command === 'sandbox' ? rest : [];
  return {
    command,
    below,
    argument: command === 'sandbox' ? rest.length - 1 : rest.length,
    word: value,
    option: option ?? flag,
    before: last.slice(0, last.length - value.length),
    target: { url, manager, sandbox, profile, tokenFile, stateDir },
    user: values.get('--user'),
  };
}
