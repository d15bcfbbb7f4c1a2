import { closeSync, constants, lchownSync, linkSync, mkdirSync, openSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { type Clock, runTime, sleep } from '../../base/clock.ts';
import { LAUNCH_VARIABLES } from '../../base/node-variables.ts';
import { leaveProgram, type StartedProgram, startProgram, TO_PROGRAM } from '../../base/start-program.ts';
import { ApiError } from '../../contract/errors.ts';
import { SOCKET, TOKEN } from '../rootfs.ts';
import type { LaunchCommand } from '../walls/isolation.ts';
import { childrenOf, identify, type ProcessIdentity } from './host-process.ts';
import type { SandboxFiles } from './sandbox-files.ts';

const START_TIMEOUT_MS = 30_000;
const POLL_MS = 5;
const SOCKET_MODE = 0o600;
/** How much of bubblewrap's own output is kept. */
const OUTPUT_MAX_LENGTH = 2_000;
/** Writes this shell's pid into the files before `--`, then becomes the command after it. */
const JOIN_GROUPS = [
  ...['/bin/sh', '-c'],
  'while [ "$1" != -- ]; do echo $$ > "$1" || exit 1; shift; done; shift; exec "$@"',
  'sh',
];

/**
 * Starts a sandbox's daemon, which outlives this program, and waits until it accepts requests. It joins `groups`, files
 * that take a pid, before anything of it runs. `user` is the sandbox's own, null: this program's. Its control socket gets
 * a name outside the sandbox, so that nothing that processes inside put in its place is ever connected to. Throws
 * `internal_error` with the last line of output if the daemon ends instead.
 */
export async function launchDaemon(
  clock: Clock,
  files: SandboxFiles,
  command: LaunchCommand,
  groups: string[],
  user: number | null,
): Promise<ProcessIdentity> {
  rmSync(files.run, { recursive: true, force: true });
  rmSync(files.control_socket, { force: true });
  mkdirSync(files.run, { mode: 0o700 });
  if (user !== null) lchownSync(files.run, user, user);
  const program = await start(files, command, groups);
  const { child } = program;
  await listening(clock, program, files);
  leaveProgram(program);
  child.stderr?.destroy();
  linkSync(join(files.run, SOCKET), files.control_socket);
  const daemon = await identify(
    command.bubblewrap_args ? await innermost(child.pid as number) : (child.pid as number),
  );
  if (!daemon) throw failure(files);
  return daemon;
}

/** Removes the socket's name and the token from the sandbox: they would give its processes control of the daemon. */
export function revokeControl(files: SandboxFiles): void {
  rmSync(join(files.run, SOCKET), { force: true });
  rmSync(join(files.run, TOKEN), { force: true });
}

async function start(files: SandboxFiles, command: LaunchCommand, groups: string[]): Promise<StartedProgram> {
  const { argv, cwd, env, bubblewrap_args, seccomp_filter } = command;
  const log = files.openLog();
  const run = openSync(files.run, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    const started = await startProgram(
      groups.length === 0 ? argv : [...JOIN_GROUPS, ...groups, '--', ...argv],
      {
        cwd,
        env: { ...LAUNCH_VARIABLES, ...env },
        is_detached: true,
        // Bubblewrap's own output matters only until the daemon runs. Its init keeps these streams: `/dev/null` among
        // them would be the host's own node, which a sandbox of a manager run by root could change.
        stdio: bubblewrap_args
          ? ['pipe', 'pipe', 'pipe', TO_PROGRAM, log, seccomp_filter ? TO_PROGRAM : 'ignore']
          : ['ignore', log, log, run],
      },
    );
    const { child } = started;
    child.unref();
    child.stdin?.destroy();
    child.stdout?.destroy();
    if (bubblewrap_args) {
      const pipes = child.stdio as (Writable | null)[];
      send(pipes[3], bubblewrap_args.map((arg) => `${arg}\0`).join(''));
      if (seccomp_filter) send(pipes[5], seccomp_filter);
    }
    return started;
  } finally {
    closeSync(log);
    closeSync(run);
  }
}

function send(pipe: Writable | null | undefined, content: string | Buffer): void {
  pipe?.on('error', () => {}); // it has ended; its exit is reported elsewhere
  pipe?.end(content);
}

async function listening(clock: Clock, { child, ended }: StartedProgram, files: SandboxFiles): Promise<void> {
  let end: string | null = null;
  let output = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    output = `${output}${text}`.slice(-OUTPUT_MAX_LENGTH);
  });
  void ended.then(({ code, signal, refusal }) => {
    end = refusal === null ? `it exited with ${code ?? signal}` : `its program cannot be started: ${refusal}`;
  });
  const until_ms = runTime(clock).monotonicMs() + START_TIMEOUT_MS;
  while (!isListening(join(files.run, SOCKET))) {
    if (end !== null || runTime(clock).monotonicMs() > until_ms) {
      throw failure(files, end ?? 'it took too long', output.trim());
    }
    await sleep(runTime(clock), POLL_MS);
  }
}

/** A socket has its name before anything listens on it; the daemon sets the mode once it does. */
function isListening(socket: string): boolean {
  return ((statSync(socket, { throwIfNoEntry: false })?.mode ?? 0) & 0o777) === SOCKET_MODE;
}

function failure(files: SandboxFiles, reason = 'it has ended', output = ''): ApiError {
  return new ApiError(
    'internal_error',
    `The sandbox's daemon did not start: ${reason}. ${output || files.lastLogLine()}`,
  );
}

/** Bubblewrap is two processes: one outside, and the init of the new pid namespace, whose child is the daemon. */
async function innermost(pid: number): Promise<number> {
  const [init] = await childrenOf(pid);
  const [daemon] = init === undefined ? [] : await childrenOf(init);
  return daemon ?? -1;
}
