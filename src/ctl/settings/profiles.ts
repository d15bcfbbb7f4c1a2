import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { EXIT, Failure, reason } from '../failure.ts';
import type { ConfigFile, Profile } from './config-file.ts';

const FILE_MAX_BYTES = 1024 * 1024;
const ROOT = 0;
const OTHERS = 0o077;
const WRITABLE_BY_ALL = 0o002;

/** The file that holds profiles: `sandboxctl/config.yaml` in `XDG_CONFIG_HOME`, which is `~/.config` unless it is absolute. */
export function configPath({ XDG_CONFIG_HOME: given = '', HOME }: NodeJS.ProcessEnv): string {
  const folder = isAbsolute(given) ? given : join(HOME || homedir(), '.config');
  return join(folder, 'sandboxctl', 'config.yaml');
}

/**
 * The config file's content; null where there is none. A usage error where it is wrong, belongs to another user, can be
 * written by all, or holds a token that others can read. Contract section 4, "Settings of `sandboxctl`".
 */
export async function readProfiles(env: NodeJS.ProcessEnv): Promise<ConfigFile | null> {
  const path = configPath(env);
  const found = contentOf(path);
  if (found === null) return null;
  const { parseConfigFile } = await import('./config-file.ts');
  const file = parseConfigFile(path, found.text, env);
  checkOwner(file, found.stats);
  return file;
}

/** The profile of this name, or else the default one; null where none is the default. Throws `Failure` for an unknown name. */
export function profileOf(file: ConfigFile | null, path: string, name: string | null): Profile | null {
  const wanted = name ?? file?.default_profile ?? null;
  if (wanted === null) return null;
  const profile = file?.profiles.get(wanted);
  if (profile) return profile;
  const known = [...(file?.profiles.keys() ?? [])];
  const there = known.length > 0 ? `${path} has ${known.join(', ')}` : `${path} has none`;
  throw new Failure(EXIT.usage, `there is no profile ${JSON.stringify(wanted)}: ${there}`);
}

function contentOf(path: string): { text: string; stats: Stats } | null {
  let fd: number;
  try {
    // A pipe in its place would hold up every command.
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw new Failure(EXIT.usage, `cannot read ${path}: ${reason(error)}`);
  }
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw new Failure(EXIT.usage, `${path} is not a file`);
    if (stats.size > FILE_MAX_BYTES) throw new Failure(EXIT.usage, `${path} is too long`);
    return { text: readFileSync(fd, 'utf8'), stats };
  } finally {
    closeSync(fd);
  }
}

function checkOwner({ path, profiles }: ConfigFile, { uid, mode }: Stats): void {
  if (uid !== process.getuid?.() && uid !== ROOT) {
    throw new Failure(EXIT.usage, `${path} belongs to user ${uid}: it is not read`);
  }
  if ((mode & WRITABLE_BY_ALL) !== 0)
    throw new Failure(EXIT.usage, `${path} can be written by all: chmod 600 it`);
  const has_token = [...profiles.values()].some(({ token }) => token !== undefined);
  if (has_token && (mode & OTHERS) !== 0) {
    throw new Failure(
      EXIT.usage,
      `${path} holds a token and must have mode 0600; or keep the token in a file of its own, named by token_file`,
    );
  }
}
