/**
 * Environment variables that change Node itself or the libraries it is built on. They are meant for the application of
 * an image; in this program they would preload foreign code, open an inspector or prevent the start. A launcher, or the
 * program itself, renames them with `ASIDE_PREFIX`, and supervised processes get them back under their own names.
 * `NODE_EXTRA_CA_CERTS` is not listed: it only adds authorities that deliveries trust. `SSL_CERT_FILE` and
 * `SSL_CERT_DIR` have no effect on Node without an option or variable that is listed.
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

/** The prefix of a variable of `NODE_VARIABLES` that has been renamed. */
export const ASIDE_PREFIX = 'SANDBOXD_CHILD_';

/** Renames the variables of `NODE_VARIABLES` in `env`; returns whether there were any. */
export function hideNodeVariables(env: NodeJS.ProcessEnv): boolean {
  const found = NODE_VARIABLES.filter((name) => env[name] !== undefined);
  for (const name of found) {
    env[ASIDE_PREFIX + name] = env[name];
    delete env[name];
  }
  return found.length > 0;
}

/** Returns a copy of an environment with the renamed variables under their own names again. */
export function restoreNodeVariables(env: NodeJS.ProcessEnv): Record<string, string> {
  const aside = NODE_VARIABLES.map((name) => ASIDE_PREFIX + name);
  const entries = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(
    entries.map(([name, value]) => [aside.includes(name) ? name.slice(ASIDE_PREFIX.length) : name, value]),
  );
}
