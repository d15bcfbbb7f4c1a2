/**
 * Variables that change Node itself or the libraries it is built from. They are meant for the application of an image;
 * here they would preload its code, open an inspector or keep this program from starting. The launcher, or the program
 * itself, hides them under names of their own and restores them for the processes it starts.
 *
 * `NODE_EXTRA_CA_CERTS` is not among them: it only adds authorities that deliveries trust. `SSL_CERT_FILE` and
 * `SSL_CERT_DIR` have no effect without an option or a variable that is among them.
 */
export const NODE_VARIABLES = [
  'NODE_OPTIONS',
  'NODE_PATH',
  'NODE_COMPILE_CACHE',
  'NODE_V8_COVERAGE',
  'NODE_ICU_DATA',
  'NODE_UNIQUE_ID',
  'NODE_REDIRECT_WARNINGS',
  'NODE_PENDING_DEPRECATION',
  'NODE_DEBUG',
  'NODE_DEBUG_NATIVE',
  'NODE_USE_ENV_PROXY',
  'NODE_USE_SYSTEM_CA',
  'NODE_PRESERVE_SYMLINKS',
  'NODE_PRESERVE_SYMLINKS_MAIN',
  'OPENSSL_CONF',
  'OPENSSL_MODULES',
  'OPENSSL_ENGINES',
  'UV_THREADPOOL_SIZE',
  'UV_USE_IO_URING',
];

/** The prefix of a hidden variable's name. */
export const HIDDEN_PREFIX = 'SANDBOXD_CHILD_';

/** The C library's setting of how many heaps a program has: one takes less memory than one of each thread, and no more time. */
export const HEAPS_VARIABLE = 'MALLOC_ARENA_MAX';

/** What the daemon is started with. The processes it starts have none of it; see `restoreNodeVariables`. */
export const LAUNCH_VARIABLES = { [HEAPS_VARIABLE]: '1', [HIDDEN_PREFIX + HEAPS_VARIABLE]: '' };

/** Moves the variables in `env` to their hidden names; true if there were any. */
export function hideNodeVariables(env: NodeJS.ProcessEnv): boolean {
  const found = NODE_VARIABLES.filter((name) => env[name] !== undefined);
  for (const name of found) {
    env[HIDDEN_PREFIX + name] = env[name];
    delete env[name];
  }
  return found.length > 0;
}

/**
 * A copy of the environment in which hidden variables have their own names again, and `HEAPS_VARIABLE` the value it had
 * before the launcher changed it.
 */
export function restoreNodeVariables(env: NodeJS.ProcessEnv): Record<string, string> {
  const restored: Record<string, string> = {};
  const hidden: Record<string, string> = {};
  for (const [name, value = ''] of Object.entries(env)) {
    const own_name = name.slice(HIDDEN_PREFIX.length);
    const is_hidden =
      name.startsWith(HIDDEN_PREFIX) && [...NODE_VARIABLES, HEAPS_VARIABLE].includes(own_name);
    if (is_hidden) hidden[own_name] = value;
    else if (env[name] !== undefined) restored[name] = value;
  }
  // Empty: it was not set.
  if (hidden[HEAPS_VARIABLE] === '') {
    delete hidden[HEAPS_VARIABLE];
    delete restored[HEAPS_VARIABLE];
  }
  return { ...restored, ...hidden };
}
