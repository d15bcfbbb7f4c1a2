import { resolve } from 'node:path';
import type { ProcessRequest } from '../contract/processes.ts';
import { CannotStart, checkDirectory, findProgram } from './command.ts';
import type { ProcessContext } from './context.ts';
import type { LaunchSpec } from './launch.ts';
import { commandOf } from './request.ts';
import { MARK_VARIABLE } from './tree.ts';
import { findUser, type User } from './user.ts';

/** Terminals get this name unless the request's `env` has another TERM. */
const TERMINAL_NAME = 'xterm-256color';

/** What the request and the system say about a start, checked: everything but the clock, pipes and logs. */
export type Prepared = Omit<LaunchSpec, 'clock' | 'folder' | 'logs' | 'see'>;

/** Finds the program, the directory and the account. Throws CannotStart with the field at fault. */
export async function prepare(
  context: ProcessContext,
  request: ProcessRequest,
  mark: string,
): Promise<Prepared> {
  const argv = commandOf(request);
  const cwd = resolve(request.cwd ?? '.');
  const user = await account(context, request);
  const env: Record<string, string> = {
    ...context.environment(),
    ...(user && { HOME: user.home, USER: user.name, LOGNAME: user.name }),
    ...(request.pty && { TERM: TERMINAL_NAME }),
    ...request.env,
    [MARK_VARIABLE]: mark,
  };
  await checkDirectory(cwd);
  const program = await findProgram(argv[0], cwd, env.PATH);
  return { argv, program, cwd, env, user, stdin: request.stdin ?? 'ignore', pty: request.pty ?? null };
}

/** The account to change to; null where it is the daemon's own. */
async function account(context: ProcessContext, request: ProcessRequest): Promise<User | null> {
  const name = request.user ?? context.default_user;
  if (name === null) return null;
  const user = await findUser(name);
  if (!user) throw new CannotStart('user', `there is no account ${name}`);
  if (user.uid === process.getuid?.() && user.gid === process.getgid?.()) return null;
  return user;
}
