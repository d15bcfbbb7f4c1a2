import { mkdir } from 'node:fs/promises';
import type { Account } from '../../base/linux/accounts.ts';
import { turns } from '../../base/loop-turns.ts';
import { OUTPUT_STREAMS } from '../../contract/words.ts';
import type { ProcessContext } from '../context.ts';
import type { ProcessRecord } from '../record.ts';
import { type RecordFile, removeFolder } from '../record-file.ts';
import { TAG_VARIABLE } from '../tree/tree.ts';
import { CannotStart, fileOf } from './command.ts';
import type { Launched, Outlet } from './launch.ts';
import type { LaunchSpec } from './launcher.ts';
import { makePipes, OpenPipes, removePipes } from './pipes.ts';
import { launchTerminal } from './terminal.ts';

/** Terminals get this name unless the request's `env` has another TERM. */
const TERMINAL_NAME = 'xterm-256color';

/** A run to start. */
export interface RunStart {
  record: ProcessRecord;
  file: RecordFile;
  /** The process's own folder. */
  folder: string;
  /** Whether `folder` is still to be made. */
  is_first: boolean;
  outlet: Outlet;
  /** Called with the signal of each signal key typed at the terminal. */
  onSignalKey: (signal: string) => void;
}

/**
 * Starts one run: saves the record, opens pipes or a terminal, and launches the program. Throws the catalogue's error
 * or the system's if it cannot be started; no pipe stays open then. The order matters: the record is written before
 * the program runs, so that a daemon that is killed in between finds the process again by its tag.
 *
 * Whether the disk answers is found out by another thread, which makes the folder or removes the pipes of the run before.
 * What follows at once is done in place: waking that thread for each step would take several times as long as the steps.
 */
export async function startRun(context: ProcessContext, start: RunStart): Promise<Launched> {
  const { record, file, folder, is_first, outlet } = start;
  const { pty, stdin = 'ignore' } = record.request;
  const spec = await prepare(context, record);
  await (is_first ? makeNew(folder) : removePipes(folder));
  await turns.taken();
  if (pty) {
    await file.saveInPlace();
    return launchTerminal(context.launcher, spec, pty, outlet, start.onSignalKey);
  }
  await makePipes(folder, stdin === 'pipe' ? [...OUTPUT_STREAMS, 'stdin'] : OUTPUT_STREAMS);
  const pipes = OpenPipes.open(folder, stdin, outlet);
  try {
    await file.saveInPlace();
    if (spec.user) pipes.giveTo(spec.user);
    const program = await context.launcher.start(spec, pipes.child_fds);
    pipes.closeChildEnds();
    return {
      ...program,
      stdin: pipes.stdin,
      output_closed: pipes.output_closed,
      drain: () => pipes.drain(),
      close: () => pipes.close(),
    };
  } catch (error) {
    pipes.close();
    throw error;
  }
}

/** Makes a folder, in place of what a start has left that could not be undone for want of descriptors. */
async function makeNew(folder: string): Promise<void> {
  const make = () => mkdir(folder, { mode: 0o700 });
  await make().catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
    await removeFolder(folder);
    await make();
  });
}

/** Finds the account, and composes the environment. Throws CannotStart with the field at fault. */
async function prepare(context: ProcessContext, record: ProcessRecord): Promise<LaunchSpec> {
  const { request, command, cwd, mark } = record;
  const plain = context.environment();
  const user = await account(context, request.user);
  const env: Record<string, string> = {
    ...plain,
    PWD: cwd,
    ...(user && { HOME: user.home, USER: user.name, LOGNAME: user.name }),
    ...(request.pty && { TERM: TERMINAL_NAME }),
    ...request.env,
    [TAG_VARIABLE]: mark,
  };
  const file = fileOf(command[0], cwd);
  return { argv: command, file, cwd, env, user, has_terminal: request.pty !== undefined, mark };
}

/** The account to change to; null for the daemon's own. */
async function account(context: ProcessContext, name = context.default_user): Promise<Account | null> {
  if (name === null) return null;
  const { findAccount } = await import('../../base/linux/accounts.ts');
  const found = await findAccount(name);
  if (!found) throw new CannotStart('user', `there is no account ${name}`);
  return found.uid === process.getuid?.() && found.gid === process.getgid?.() ? null : found;
}
