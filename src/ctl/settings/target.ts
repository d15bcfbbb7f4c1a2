import { DEFAULT_STATE_DIR } from '../../contract/defaults.ts';
import {
  type Address,
  type ConnectionOptions,
  checkedToken,
  findDaemon,
  httpUrl,
  readToken,
  type Token,
} from '../api/config.ts';
import { EXIT, Failure } from '../failure.ts';
import type { Profile } from './config-file.ts';
import { configPath, profileOf, readProfiles } from './profiles.ts';

/** The flags that say where a command goes. */
export interface TargetOptions extends ConnectionOptions {
  manager?: string | undefined;
  sandbox?: string | undefined;
  profile?: string | undefined;
}

/** A daemon, and the state directory that is said to be its own. */
export interface DaemonTarget {
  of: 'daemon';
  address: Address;
  token: Token;
  state_dir: string;
}

/** A manager, and the sandbox that is meant unless a command names one: an id, or the beginning of one. */
export interface ManagerTarget {
  of: 'manager';
  address: Address;
  token: Token;
  sandbox: string | null;
}

type Environment = NodeJS.ProcessEnv;
type Settings = Partial<Omit<Profile, 'name'>>;

/**
 * Where a command goes. What the flags say comes first, then the profile that `--profile` names, then the environment,
 * then the profile that `SANDBOXCTL_PROFILE` names or the default one; otherwise it is the daemon of this machine. The
 * config file is read only where it is needed. With `--sandbox`, or where a command `needs_manager`, daemons do not count.
 * Throws usage failures. Contract section 4, "Settings of `sandboxctl`".
 */
export async function findTarget(
  flags: TargetOptions,
  env: Environment,
  needs_manager = flags.sandbox !== undefined,
): Promise<DaemonTarget | ManagerTarget> {
  const named: Settings = flags.profile === undefined ? {} : ((await profileIn(env, flags.profile)) ?? {});
  const layers: Settings[] = [settingsIn(flags), named, environmentIn(env)];
  const decides = ({ manager, url, state_dir }: Settings) =>
    manager !== undefined || (!needs_manager && (url ?? state_dir) !== undefined);
  const deciding = layers.find(decides);
  if (
    needs_manager &&
    flags.profile !== undefined &&
    flags.manager === undefined &&
    named.manager === undefined
  ) {
    throw new Failure(EXIT.usage, `the profile ${flags.profile} names no manager`);
  }
  if (deciding?.manager !== undefined) return managerTarget(deciding.manager, layers, env);
  if (deciding) return daemonTarget(flags, named, flags.profile === undefined ? env : {});
  const profile: Settings = (await profileIn(env, env.SANDBOXCTL_PROFILE || null)) ?? {};
  if (decides(profile) && profile.manager !== undefined) {
    return managerTarget(profile.manager, [...layers, profile], env);
  }
  if (!needs_manager) return daemonTarget(flags, profile, env);
  throw new Failure(EXIT.usage, 'no manager given: use --manager, SANDBOXCTL_MANAGER or a profile');
}

async function profileIn(env: Environment, name: string | null): Promise<Profile | null> {
  return profileOf(await readProfiles(env), configPath(env), name);
}

function settingsIn({ manager, url, stateDir, tokenFile, sandbox }: TargetOptions): Settings {
  return { manager, url, state_dir: stateDir, token_file: tokenFile, sandbox } as Settings;
}

function environmentIn(env: Environment): Settings {
  const { SANDBOXCTL_MANAGER, SANDBOXCTL_TOKEN, SANDBOXCTL_TOKEN_FILE, SANDBOXCTL_SANDBOX } = env;
  const { SANDBOXD_URL, SANDBOXD_STATE_DIR } = env;
  return {
    manager: SANDBOXCTL_MANAGER || undefined,
    token: SANDBOXCTL_TOKEN || undefined,
    token_file: SANDBOXCTL_TOKEN_FILE || undefined,
    sandbox: SANDBOXCTL_SANDBOX || undefined,
    url: SANDBOXD_URL || undefined,
    state_dir: SANDBOXD_STATE_DIR || undefined,
  } as Settings;
}

async function managerTarget(text: string, layers: Settings[], env: Environment): Promise<ManagerTarget> {
  const url = httpUrl(text);
  if (url === null || url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new Failure(
      EXIT.usage,
      'the URL of a manager must be http://… or https://…, without credentials and query',
    );
  }
  const address: Address = { shown: url.origin, url, socket_path: null, of: 'manager' };
  const token = tokenIn(layers, env) ?? tokenIn([await profileOfManager(url, env)], env);
  if (token === null) {
    throw new Failure(
      EXIT.usage,
      `there is no token for ${address.shown}: give --token-file, SANDBOXCTL_TOKEN_FILE, SANDBOXCTL_TOKEN or a profile`,
    );
  }
  const sandbox = layers.find((each) => each.sandbox !== undefined)?.sandbox ?? null;
  return { of: 'manager', address, token: { value: token }, sandbox };
}

/** A profile that nobody named on the command line gives its token to its own manager alone. */
async function profileOfManager(url: URL, env: Environment): Promise<Settings> {
  const profile = await profileIn(env, env.SANDBOXCTL_PROFILE || null);
  return profile?.manager !== undefined && httpUrl(profile.manager)?.href === url.href ? profile : {};
}

function tokenIn(layers: Settings[], env: Environment): string | null {
  const { token, token_file } = layers.find((each) => (each.token ?? each.token_file) !== undefined) ?? {};
  if (token !== undefined && token_file !== undefined) {
    throw new Failure(EXIT.usage, 'SANDBOXCTL_TOKEN and SANDBOXCTL_TOKEN_FILE are both set: unset one');
  }
  if (token_file !== undefined) return readToken(token_file);
  if (token === undefined) return null;
  return checkedToken(token, token === env.SANDBOXCTL_TOKEN ? 'SANDBOXCTL_TOKEN' : 'the profile');
}

function daemonTarget(flags: TargetOptions, profile: Settings, env: Environment): DaemonTarget {
  const url = flags.url ?? profile.url;
  const stateDir = flags.stateDir ?? profile.state_dir;
  const is_token_given = flags.tokenFile !== undefined || Boolean(env.SANDBOXD_CONTROL_TOKEN_FILE);
  const { token_file = undefined, token = undefined } = is_token_given ? {} : profile;
  const found = findDaemon({ url, stateDir, tokenFile: flags.tokenFile ?? token_file, token }, env);
  return { of: 'daemon', ...found, state_dir: stateDir ?? (env.SANDBOXD_STATE_DIR || DEFAULT_STATE_DIR) };
}
