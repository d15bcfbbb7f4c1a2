import { Writable } from 'node:stream';
import type { Sandbox } from '../../client/sandbox.ts';
import { daemonAt, managerAt } from '../api/clients.ts';
import { listProcesses } from '../api/list-processes.ts';
import { sandboxesBeginning, selectedSandbox } from '../manager/sandbox-id.ts';
import { readProfiles } from '../settings/profiles.ts';
import { findTarget } from '../settings/target.ts';
import { Output } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { PATH_COMMANDS, PROCESS_COMMANDS, SANDBOX_COMMANDS } from './asked.ts';
import type { TypedWords } from './typed-words.ts';

/** More than anybody reads; a larger directory is completed once more of the name is typed. */
const CANDIDATES_MAX = 2_000;

type Environment = NodeJS.ProcessEnv;

/**
 * What the word at the cursor may become, of what only the daemon, the manager or the config file knows: paths in the
 * sandbox, ids of processes and sandboxes, profiles. Names that a terminal would act upon are left out. Rejects where it
 * cannot be found out.
 */
export async function candidates(typed: TypedWords, env: Environment): Promise<string[]> {
  const found = await candidatesFor(typed, env);
  return found
    .filter((each) => each.startsWith(typed.word) && printable(each) === each)
    .slice(0, CANDIDATES_MAX)
    .map((each) => typed.before + each);
}

async function candidatesFor(typed: TypedWords, env: Environment): Promise<string[]> {
  const { command, below, argument, option } = typed;
  if (option === '--profile') return [...((await readProfiles(env))?.profiles.keys() ?? [])];
  if (option === '--sandbox') return sandboxIds(typed, env);
  if (option !== null) return [];
  if (command === 'sandbox' && SANDBOX_COMMANDS.includes(below)) return sandboxIds(typed, env);
  if (PROCESS_COMMANDS.includes(command) && argument === 0) return processIds(typed, env);
  return PATH_COMMANDS.includes(command) ? paths(typed, env) : [];
}

async function sandboxIds({ word, target }: TypedWords, env: Environment): Promise<string[]> {
  const { address, token } = await findTarget({ ...target, sandbox: undefined }, env, true);
  if (!/^(s|sb|sbx|sbx_[0-9a-f-]*)?$/.test(word)) return [];
  const { sandboxes } = await sandboxesBeginning(managerAt(address, token), word.length < 4 ? 'sbx_' : word);
  return sandboxes.map(({ id }) => id);
}

async function processIds(typed: TypedWords, env: Environment): Promise<string[]> {
  const processes = await listProcesses(await sandboxOf(typed, env));
  return processes
    .filter(({ exited_at }) => typed.command === 'logs' || exited_at === null)
    .map(({ process_id }) => process_id);
}

/** Paths in the sandbox, directories with a slash at their ends; `cp` marks those in the sandbox by a colon. */
async function paths(typed: TypedWords, env: Environment): Promise<string[]> {
  const { word, command, user } = typed;
  const colon = word.startsWith(':') ? ':' : '';
  if (command === 'cp' && colon === '') return [];
  const path = word.slice(colon.length);
  if (path === '') return [`${colon}/`];
  if (!path.startsWith('/')) return [];
  const folder = path.slice(0, path.lastIndexOf('/') + 1);
  const sandbox = await sandboxOf(typed, env);
  const found: string[] = [];
  for await (const entry of sandbox.files.list(folder, { user })) {
    // A name that is not UTF-8 cannot be typed; one with a slash is none.
    if (entry.path_base64 !== undefined || entry.name.includes('/')) continue;
    const full = folder + entry.name;
    if (full.startsWith(path)) found.push(`${colon}${full}${entry.type === 'dir' ? '/' : ''}`);
    if (found.length === CANDIDATES_MAX) break;
  }
  return found;
}

async function sandboxOf({ target }: TypedWords, env: Environment): Promise<Sandbox> {
  const found = await findTarget(target, env);
  if (found.of === 'daemon') return daemonAt(found.address, found.token).daemon.sandbox;
  const manager = managerAt(found.address, found.token);
  const silent = new Output(new Writable({ write: (_chunk, _encoding, done) => done() }));
  const context = { manager, out: silent, err: silent, json: false, sandbox_id: found.sandbox };
  return manager.sandbox(await selectedSandbox(context));
}
