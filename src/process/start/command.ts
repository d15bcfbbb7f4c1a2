import { resolve } from 'node:path';
import { ApiError } from '../../contract/errors.ts';
import type { ProcessRequest } from '../../contract/processes.ts';

/** The search path for programs if the environment has no PATH, as in `launcher.c`. */
export const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

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

/** The file that `program` names: a path is relative to `cwd`; a bare name stays, and is searched when it is started. */
export function fileOf(program: string, cwd: string): string {
  return program.includes('/') ? resolve(cwd, program) : program;
}

/** The error for a start that the kernel refused with `code`, though its program is there. */
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

/** The error for a program that is not there. */
export function notFound(program: string): CannotStart {
  return new CannotStart('command', `${program} is not found`, 127);
}

/** The error for what is no program, or not for this user. */
export function notExecutable(program: string): CannotStart {
  return new CannotStart('command', `${program} is not executable`);
}
