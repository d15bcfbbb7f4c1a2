import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { builtProgram, ProgramCopies } from '../../src/runtime/local/program.ts';
import { Bubblewrap } from '../../src/runtime/walls/bubblewrap.ts';

/**
 * What `npm run manager` starts: a manager with its state in the checkout's ignored folder, and with what this machine
 * can run. Options are those of `sandbox-manager` and win; a command such as `token` gets the same database.
 */
const root = fileURLToPath(new URL('../../', import.meta.url));
const state = join(root, '.state/manager');
const given = process.argv.slice(2);

function isGiven(name: string): boolean {
  const variable = `SANDBOX_MANAGER_${name.replaceAll('-', '_').toUpperCase()}`;
  return Boolean(process.env[variable]) || given.some((word) => word.split('=')[0] === `--${name}`);
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

const is_server = given[0] === undefined || given[0].startsWith('-');
const words = is_server
  ? [...asOptions([...places(), ...(await runtimeHere())]), ...given]
  : [...given, ...asOptions(places().slice(0, 1))];
const program = join(root, 'dist/sandbox-manager.cjs');
process.execve?.(process.execPath, [process.execPath, '--disable-sigusr1', program, ...words]);
