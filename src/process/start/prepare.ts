import type { ProcessRecord } from '../record.ts';
import { TAG_VARIABLE } from '../tree/tree.ts';
import { CannotStart, findProgram } from './command.ts';
import type { ProcessContext } from './context.ts';
import type { LaunchSpec } from './launch.ts';
import { findUser, type User } from './user.ts';

/** Terminals get this name unless the request's `env` has another TERM. */
const TERMINAL_NAME = 'xterm-256color';

/** Finds the program and the account, and composes the environment. Throws CannotStart with the field at fault. */
export function prepare(context: ProcessContext, record: ProcessRecord): LaunchSpec {
  const { request, command, cwd, mark } = record;
  const plain = context.environment();
  const user = account(context, request.user);
  const program = findProgram(command[0], cwd, request.env?.PATH ?? plain.PATH);
  const env: Record<string, string> = {
    ...plain,
    ...(user && { HOME: user.home, USER: user.name, LOGNAME: user.name }),
    ...(request.pty && { TERM: TERMINAL_NAME }),
    ...request.env,
    [TAG_VARIABLE]: mark,
  };
  return { argv: command, program, cwd, env, user };
}

/** The account to change to; null for the daemon's own. */
function account(context: ProcessContext, name = context.default_user): User | null {
  if (name === null) return null;
  const user = findUser(name);
  if (!user) throw new CannotStart('user', `there is no account ${name}`);
  if (user.uid === process.getuid?.() && user.gid === process.getgid?.()) return null;
  return user;
}
