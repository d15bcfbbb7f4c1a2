import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../src/base/clock.ts';
import { openDatabase } from '../../src/manager/database/database.ts';
import { DatabaseClock } from '../../src/manager/database/database-clock-store.ts';
import { TokenStore } from '../../src/manager/database/token-store.ts';
import { builtProgram, ProgramCopies } from '../../src/runtime/local/program.ts';
import { Bubblewrap } from '../../src/runtime/walls/bubblewrap.ts';

/**
 * What `npm run manager` starts: a manager with its state in the checkout's ignored folder, with what this machine can
 * run, and with a token in that folder. Options are those of `sandbox-manager` and win; a command such as `token` gets
 * the same database.
 */
const root = fileURLToPath(new URL('../../', import.meta.url));
const state = join(root, '.state/manager');
const given = process.argv.slice(2);

const TEAM = 'team_1';
/** What the command line and the console use. */
const SCOPES = ['sandboxes:write', 'webhooks:read', 'quota:read', 'usage:read'] as const;

function optionValue(name: string): string | undefined {
  const index = given.findIndex((word) => word.split('=')[0] === `--${name}`);
  const variable = `SANDBOX_MANAGER_${name.replaceAll('-', '_').toUpperCase()}`;
  if (index < 0) return process.env[variable] || undefined;
  const [, value = given[index + 1] ?? ''] = given[index]?.split('=') ?? [];
  return value;
}

function isGiven(name: string): boolean {
  return optionValue(name) !== undefined;
}

/** Why no sandbox can be isolated here, or null. */
async function obstacle(): Promise<string | null> {
  try {
    await new Bubblewrap(new ProgramCopies(state, builtProgram())).check();
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

async function runtimeHere(): Promise<[string, string][]> {
  if (isGiven('runtime') || isGiven('config')) return [];
  const why_not = await obstacle();
  if (why_not === null) return [];
  console.log(`${why_not}

Until then the manager keeps records of sandboxes and runs none (--runtime none). To run them without any isolation:

  npm run manager -- --runtime local-unsafe
`);
  return [['runtime', 'none']];
}

/** Where state is kept unless it is said; a manager's state beside the code, where it used to be, is used on. */
function places(): [string, string][] {
  const is_beside = existsSync(join(root, 'sandbox-manager.key')) && !existsSync(state);
  if (isGiven('config') || is_beside) return [];
  mkdirSync(state, { recursive: true, mode: 0o700 });
  return [
    ['database', `sqlite:${join(state, 'manager.db')}`],
    ['secret-key-file', join(state, 'manager.key')],
    ['data-dir', join(state, 'data')],
  ];
}

function asOptions(defaults: [string, string][]): string[] {
  return defaults.filter(([name]) => !isGiven(name)).flatMap(([name, value]) => [`--${name}`, value]);
}

/** Puts a token that the database knows into a file, and prints how to use it. */
async function offerToken(database_url: string): Promise<void> {
  const path = join(state, 'token');
  const database = await openDatabase(database_url);
  try {
    const tokens = new TokenStore(database.db, await DatabaseClock.open(database, systemClock));
    const kept = existsSync(path) ? readFileSync(path, 'utf8').trim() : '';
    if ((await tokens.find(kept)) === null) {
      rmSync(path, { force: true });
      writeFileSync(path, `${await tokens.create(TEAM, SCOPES, false)}\n`, { mode: 0o600, flag: 'wx' });
    }
  } finally {
    await database.close();
  }
  const listen = optionValue('listen') ?? '127.0.0.1:8080';
  console.log(`A token of ${TEAM} is in ${relative(process.cwd(), path)}, for the command line and the console. In another terminal:

  export SANDBOXCTL_MANAGER=http://${listen} SANDBOXCTL_TOKEN_FILE=${path}
  npx sandboxctl sandbox claim

The console is at http://${listen}/console/.
`);
}

const is_server = given[0] === undefined || given[0].startsWith('-');
const is_asked = given.some((word) => ['--help', '-h', '--version', '-V'].includes(word));
const words = is_server
  ? [...asOptions([...places(), ...(await runtimeHere())]), ...given]
  : [...given, ...asOptions(places().slice(0, 1))];
const own_database = words[words.indexOf('--database') + 1];
if (is_server && !is_asked && !isGiven('database') && own_database?.startsWith('sqlite:')) {
  await offerToken(own_database);
}
const program = join(root, 'dist/sandbox-manager.cjs');
process.execve?.(process.execPath, [process.execPath, '--disable-sigusr1', program, ...words]);
