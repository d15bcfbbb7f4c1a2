import { accessSync, constants, type Stats, statSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { ApiError } from '../../contract/errors.ts';
import type { ProcessRequest } from '../../contract/schema/process-request.ts';

/** The search path for programs if the environment has no PATH. */
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** System errors that come from a limit, not from the request. */
const LIMIT_ERRORS = new Set(['EAGAIN', 'EMFILE', 'ENFILE', 'ENOMEM']);

/**
 * A command that cannot be started: a 400 that names the field, and the code with which a shell would end
 * (127 not found, 126 everything else). No event is emitted and the id stays free. Source: contract section 2.
 */
export class CannotStart extends ApiError {
  /** The code that a shell would end with. */
  readonly exit_code: 126 | 127;

  constructor(field: 'command' | 'cwd' | 'user' | 'pty', message: string, exit_code: 126 | 127 = 126) {
    super('invalid_request', `${field}: ${message}`, { field, exit_code });
    this.name = 'CannotStart';
    this.exit_code = exit_code;
  }
}

/** The argument vector that is run and shown: `shell` becomes `/bin/sh -c TEXT`. */
export function commandOf(request: ProcessRequest): [string, ...string[]] {
  if (request.command) return request.command as [string, ...string[]];
  return ['/bin/sh', '-c', request.shell ?? ''];
}

/**
 * The file that `program` names: a path is relative to `cwd`, a bare name is searched in `path`. Throws CannotStart if
 * a bare name is not found or not executable; a path is checked only when its start fails (`checkStart`).
 */
export function findProgram(program: string, cwd: string, path = DEFAULT_PATH): string {
  if (program.includes('/')) return resolve(cwd, program);
  let found_unusable = false;
  for (const folder of path.split(delimiter)) {
    const file = join(resolve(cwd, folder), program);
    const kind = kindOf(file);
    if (kind === 'program') return file;
    if (kind === 'unusable') found_unusable = true; // a directory of that name is skipped, as in shells
  }
  checkDirectory(cwd);
  throw found_unusable ? notExecutable(program) : notFound(program);
}

/** Throws CannotStart unless `cwd` is a directory and `file` a program; `name` is what the caller calls it. */
export function checkStart(file: string, cwd: string, name: string): void {
  checkDirectory(cwd);
  const kind = kindOf(file);
  if (kind !== 'program') throw kind === 'missing' ? notFound(name) : notExecutable(name);
}

/** The error for a start that the kernel refused with `code`, if `checkStart` finds nothing wrong. */
export function spawnRefusal(code: string | undefined, program: string): ApiError {
  if (code === 'ENOENT') return new CannotStart('command', `${program}: its interpreter is not found`);
  if (code === 'EPERM') return new CannotStart('user', 'the daemon may not start processes as this user');
  if (code === 'E2BIG') return new CannotStart('command', 'arguments and environment are too long');
  if (code !== undefined && LIMIT_ERRORS.has(code)) {
    return new ApiError(
      'too_many_requests',
      `The system cannot start another process right now (${code}). Try again later.`,
    );
  }
  return new CannotStart('command', `${program} cannot be executed (${code ?? 'unknown error'})`);
}

/**
 * The catalogue's error for a start that failed: `too_many_requests` for a limit of the system, `outbox_unavailable` for
 * other errors of the disk. Errors that are not the system's stay as they are.
 */
export function startError(error: unknown, program: string): unknown {
  if (error instanceof ApiError) return error;
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined) return error;
  if (LIMIT_ERRORS.has(code)) return spawnRefusal(code, program);
  return new ApiError('outbox_unavailable', `The state directory cannot be written right now (${code}).`);
}

function checkDirectory(cwd: string): void {
  const entry = entryOf(cwd);
  if (!entry || entry === 'unreachable') throw new CannotStart('cwd', `${cwd} does not exist`);
  if (!entry.isDirectory()) throw new CannotStart('cwd', `${cwd} is not a directory`);
}

function kindOf(file: string): 'program' | 'unusable' | 'directory' | 'missing' {
  const entry = entryOf(file);
  if (!entry) return 'missing';
  if (entry === 'unreachable') return 'unusable';
  if (entry.isDirectory()) return 'directory';
  try {
    accessSync(file, constants.X_OK);
    return 'program';
  } catch {
    return 'unusable';
  }
}

/** In place: the kernel answers from memory, faster than another thread is woken. */
function entryOf(file: string): Stats | 'unreachable' | undefined {
  try {
    return statSync(file, { throwIfNoEntry: false });
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES' ? 'unreachable' : undefined;
  }
}

function notFound(program: string): CannotStart {
  return new CannotStart('command', `${program} is not found`, 127);
}

function notExecutable(program: string): CannotStart {
  return new CannotStart('command', `${program} is not executable`);
}
