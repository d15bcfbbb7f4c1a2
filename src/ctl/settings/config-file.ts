import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parse, YAMLParseError } from 'yaml';
import { closestTo } from '../../base/closest.ts';
import { EXIT, Failure } from '../failure.ts';

/** What one profile says; paths are absolute. It has either a `manager` or a `url`. */
export interface Profile {
  name: string;
  manager?: string;
  sandbox?: string;
  url?: string;
  state_dir?: string;
  token_file?: string;
  token?: string;
}

/** The content of a config file. */
export interface ConfigFile {
  path: string;
  default_profile: string | null;
  profiles: Map<string, Profile>;
}

const KEYS = ['default_profile', 'profiles'];
const PROFILE_KEYS = ['manager', 'sandbox', 'url', 'state_dir', 'token_file', 'token'] as const;
const PATHS: readonly string[] = ['state_dir', 'token_file'];
const NAME = /^[A-Za-z0-9_.-]{1,64}$/;

/**
 * Parses a config file in YAML. Throws a usage failure that names the field, and for an unknown one the one that was
 * probably meant. Contract section 4, "Settings of `sandboxctl`".
 */
export function parseConfigFile(path: string, text: string, env: NodeJS.ProcessEnv): ConfigFile {
  const wrong = (field: string, problem: string) =>
    new Failure(EXIT.usage, `${path}: ${field === '' ? '' : `${field}: `}${problem}`);
  const mapping = (value: unknown, field: string, known: readonly string[] | null): [string, unknown][] => {
    if (value === null || value === undefined) return [];
    if (typeof value !== 'object' || Array.isArray(value))
      throw wrong(field, 'must be a mapping of keys to values');
    const entries = Object.entries(value);
    for (const [key] of entries) {
      if (known === null || known.includes(key)) continue;
      const meant = closestTo(key, known);
      throw wrong(
        field === '' ? key : `${field}.${key}`,
        `unknown field${meant === null ? '' : ` (Did you mean ${meant}?)`}`,
      );
    }
    return entries;
  };
  const textIn = (value: unknown, field: string): string => {
    if (typeof value === 'string' && value !== '') return value;
    throw wrong(field, 'must be a text that is not empty');
  };
  const absolute = (file: string) =>
    file.startsWith('~/') ? join(env.HOME || homedir(), file.slice(2)) : resolve(dirname(path), file);

  const content = new Map(mapping(parsed(text, wrong), '', KEYS));
  const profiles = mapping(content.get('profiles'), 'profiles', null).map(
    ([name, value]): [string, Profile] => {
      const field = `profiles.${name}`;
      if (!NAME.test(name)) throw wrong(field, 'the name must be 1 to 64 of A-Z a-z 0-9 _ - .');
      const profile: Profile = { name };
      for (const [key, given] of mapping(value, field, PROFILE_KEYS)) {
        const said = textIn(given, `${field}.${key}`);
        profile[key as (typeof PROFILE_KEYS)[number]] = PATHS.includes(key) ? absolute(said) : said;
      }
      checkProfile(profile, (problem) => wrong(field, problem));
      return [name, profile];
    },
  );
  const default_profile = content.get('default_profile') ?? null;
  return {
    path,
    default_profile: default_profile === null ? null : textIn(default_profile, 'default_profile'),
    profiles: new Map(profiles),
  };
}

function checkProfile(profile: Profile, wrong: (problem: string) => Failure): void {
  const { manager, sandbox, url, state_dir, token_file, token } = profile;
  if (manager === undefined && url === undefined && state_dir === undefined)
    throw wrong('needs manager or url');
  if (manager !== undefined && (url ?? state_dir) !== undefined) {
    throw wrong('manager cannot be used with url or state_dir');
  }
  if (manager === undefined && sandbox !== undefined) throw wrong('sandbox needs manager');
  if (token !== undefined && token_file !== undefined) throw wrong('token cannot be used with token_file');
}

function parsed(text: string, wrong: (field: string, problem: string) => Failure): unknown {
  try {
    return parse(text, { prettyErrors: true });
  } catch (error) {
    // Its message may quote the line, and so a token.
    const at = error instanceof YAMLParseError ? error.linePos?.[0] : undefined;
    throw wrong('', `is not valid YAML${at ? `: line ${at.line}, column ${at.col}` : ''}`);
  }
}
