/**
 * Variables that change Node itself, or the libraries it is made of: they are meant for the application of an image,
 * and would preload its code into this program, open an inspector in it or keep it from starting. Where a launcher
 * or the program itself moves them aside they keep their values under names of their own, for the processes that are
 * started. `NODE_EXTRA_CA_CERTS` is not among them: it only adds authorities that deliveries trust. `SSL_CERT_FILE` and
 * `SSL_CERT_DIR` mean nothing to Node without an option or a variable that is among them.
 */
export const NODE_VARIABLES = [
  ...[
    'NODE_OPTIONS',
    'NODE_PATH',
    'NODE_COMPILE_CACHE',
    'NODE_V8_COVERAGE',
    'NODE_ICU_DATA',
    'NODE_UNIQUE_ID',
  ],
  ...['NODE_REDIRECT_WARNINGS', 'NODE_PENDING_DEPRECATION', 'NODE_DEBUG', 'NODE_DEBUG_NATIVE'],
  ...['NODE_USE_ENV_PROXY', 'NODE_USE_SYSTEM_CA', 'NODE_PRESERVE_SYMLINKS', 'NODE_PRESERVE_SYMLINKS_MAIN'],
  ...['OPENSSL_CONF', 'OPENSSL_MODULES', 'OPENSSL_ENGINES'],
  ...['UV_THREADPOOL_SIZE', 'UV_USE_IO_URING'],
];

export const ASIDE_PREFIX = 'SANDBOXD_CHILD_';

/** Moves the variables aside; true where there were any. */
export function setAside(env: NodeJS.ProcessEnv): boolean {
  const found = NODE_VARIABLES.filter((name) => env[name] !== undefined);
  for (const name of found) {
    env[ASIDE_PREFIX + name] = env[name];
    delete env[name];
  }
  return found.length > 0;
}

/** An environment with its variables back under their own names. */
export function givenBack(env: NodeJS.ProcessEnv): Record<string, string> {
  const aside = NODE_VARIABLES.map((name) => ASIDE_PREFIX + name);
  const entries = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(
    entries.map(([name, value]) => [aside.includes(name) ? name.slice(ASIDE_PREFIX.length) : name, value]),
  );
}
