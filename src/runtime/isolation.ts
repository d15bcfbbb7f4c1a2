import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { NODE_FLAGS } from '../base/engine/flags.ts';
import { StartError } from '../contract/errors.ts';
import { markOf, SANDBOX_MARK_VARIABLE } from './host-process.ts';
import { kernelParts } from './kernel-parts.ts';
import { ownEtcFile } from './networks/etc-files.ts';
import type { SandboxNetwork } from './networks/local-networks.ts';
import { COMMANDS, type ProgramCopies, programIn } from './program.ts';
import { foldersAbove, hostParts, PROGRAM_DIR, RUN_DIR, STATE_DIR } from './rootfs.ts';
import type { SandboxFiles } from './sandbox-files.ts';
import { FIRST_USER } from './users/sandbox-users.ts';
import { noPrelude, type Pieces, type Prelude, preludeOf } from './walls/prelude.ts';
import { candidates, missingWalls, STRICTEST, type Walls } from './walls/walls.ts';

/** Where sandboxes find programs, beside their own commands. */
export const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** How a sandbox's daemon is started. */
export interface LaunchCommand {
  argv: [string, ...string[]];
  /** The version of the daemon's program that it runs. */
  program_version: string;
  cwd: string;
  env: Record<string, string>;
  /** Arguments for bubblewrap on descriptor 3, so that no process list shows the host's paths, with the log on
   * descriptor 4; null without it: then descriptor 3 is the run directory's. */
  bubblewrap_args: string[] | null;
  /** The filter of system calls, for bubblewrap on descriptor 5; null where there is none. */
  seccomp_filter: Buffer | null;
}

/** How sandboxes are isolated from the host. */
export interface Isolation {
  /** How sandboxes are isolated, a phrase. */
  readonly summary: string;
  /** Throws StartError if this machine does not support it. */
  check(): Promise<void>;
  /** What this machine does not allow, a phrase for each; known after `check`. */
  limitations(): string[];
  /** Whether each sandbox gets a user of its own; known after `check`. */
  hasUsers(): boolean;
  /** Whether each sandbox sees a root of its own. */
  hasRoots(): boolean;
  /** The command that starts the sandbox's daemon. */
  command(files: SandboxFiles, user: SandboxUser, network: SandboxNetwork): LaunchCommand;
}

/** As whom a sandbox runs on the host. */
export interface SandboxUser {
  /** Its user and group id; null: the manager's. */
  user: number | null;
  /** How many processes and threads a user of its own may have; null: no limit by the user. */
  processes_max: number | null;
}

const CONFINEMENT = [
  ...['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
  ...['--cap-drop', 'ALL', '--new-session'],
];
/** The daemon writes its log to descriptor 4, which the init of the sandbox, unlike the daemon, does not keep open. */
const LOG_ON_4 = ['/bin/sh', '-c', 'exec "$0" "$@" >&4 2>&4 3<&- 4>&-'];

const SECCOMP_FD = '5';

/**
 * Isolation by bubblewrap: mount, pid, ipc, uts and (where the kernel grants it) user namespaces of its own, no
 * capabilities, a filter of system calls, its own init that reaps; for a manager run by root also a user of its own.
 * Source: contract section 7, `--runtime local`.
 */
export class Bubblewrap implements Isolation {
  readonly summary = 'sandboxes are isolated from this machine and from each other';
  readonly #programs: ProgramCopies;
  readonly #path: string;
  #walls: Walls = STRICTEST;
  /** Why the walls before these do not work. */
  #why_not: string | null = null;

  /** `path`: the folders that are searched for `bwrap`. */
  constructor(programs: ProgramCopies, path = PATH) {
    this.#programs = programs;
    this.#path = path;
  }

  /** Finds the strictest walls that work here. Throws StartError if none do. */
  async check(): Promise<void> {
    this.#why_not = null;
    let why: string | null = null;
    for (const walls of candidates()) {
      this.#walls = walls;
      why = await this.#probe();
      if (why === null) return;
      this.#why_not ??= why;
    }
    throw new StartError(`--runtime local cannot isolate sandboxes: ${why}`);
  }

  /** The walls that `check` had to do without. */
  limitations(): string[] {
    return missingWalls(this.#walls, this.#why_not);
  }

  /** True for a manager run by root, unless the machine refuses it. */
  hasUsers(): boolean {
    return this.#walls.has_users;
  }

  /** Always. */
  hasRoots(): boolean {
    return true;
  }

  /** Null if a sandbox can be created; otherwise the reason. */
  async #probe(): Promise<string | null> {
    const { argv, pieces } = this.#prelude({ rootfs: '/usr' }, null);
    const args = [...this.#namespaces('probe'), '--ro-bind', '/', '/', '--ro-bind', pieces.rootfs as string];
    const all = [...argv, ...this.#asUser(FIRST_USER, null), 'bwrap', ...args, '/usr'];
    const [program = '', ...rest] = [...all, '--proc', '/proc', '--dev', '/dev', '--', '/bin/true'];
    const child = spawn(program, rest, {
      env: { PATH: this.#path },
      stdio: ['ignore', 'ignore', 'pipe', 'ignore', 'ignore', 'pipe'],
    });
    const filter = child.stdio[Number(SECCOMP_FD)] as Writable;
    filter.on('error', () => {}); // it has ended; its exit is reported below
    filter.end(this.#walls.seccomp_filter ?? '');
    try {
      const [why, [code]] = await Promise.all([text(child.stderr as Readable), once(child, 'close')]);
      return code === 0 ? null : why.trim() || `bwrap ended with ${code}`;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      if (program !== 'bwrap') return `${program} is not installed (Debian's package util-linux)`;
      return 'bubblewrap is not installed: apt-get install bubblewrap; --runtime local-unsafe isolates nothing';
    }
  }

  #prelude(pieces: Pieces, files: SandboxFiles | null): Prelude {
    return this.#walls.has_prelude ? preludeOf(pieces, files) : noPrelude(pieces);
  }

  /** Becomes the sandbox's user, with a limit of processes where control groups have none. */
  #asUser(user: number | null, processes_max: number | null): string[] {
    if (user === null || !this.#walls.has_users) return [];
    const limit = processes_max === null ? [] : ['prlimit', `--nproc=${processes_max}`];
    const ids = ['--reuid', String(user), '--regid', String(user), '--clear-groups'];
    return [...limit, 'setpriv', ...ids, '--no-new-privs'];
  }

  #namespaces(hostname: string): string[] {
    const { user_namespace, seccomp_filter } = this.#walls;
    const filter = seccomp_filter === null ? [] : ['--seccomp', SECCOMP_FD];
    return [...user_namespace, ...CONFINEMENT, ...filter, '--hostname', hostname];
  }

  /** The command line of bubblewrap with the daemon in it. */
  command(files: SandboxFiles, { user, processes_max }: SandboxUser, network: SandboxNetwork): LaunchCommand {
    const program_version = this.#programs.version();
    const installed = this.#programs.installed(program_version);
    const own: Pieces = network.etc === null ? {} : { etc: network.etc };
    const sources = { rootfs: files.rootfs, run: files.run, program: installed.folder, ...own };
    const { argv, pieces } = this.#prelude(sources, files);
    const { rootfs = '', run = '', program = '', etc = null } = pieces;
    const { empty_file, empty_folder } = programIn(program);
    const readOnly = (from: string, to: string) => ['--ro-bind', from, to];
    const cover = (is_directory: boolean) => (is_directory ? empty_folder : empty_file);
    const parts = hostParts();
    const mounted = [...parts.map(({ path }) => path), PROGRAM_DIR, RUN_DIR];
    return {
      program_version,
      argv: [
        ...network.enter,
        ...argv,
        ...this.#asUser(user, processes_max),
        'bwrap',
        ...['--args', '3', '--', ...LOG_ON_4, `${PROGRAM_DIR}/node`, ...NODE_FLAGS],
        ...[`${PROGRAM_DIR}/dist/sandboxd.cjs`, ...daemonOptions(STATE_DIR, RUN_DIR, network.port)],
      ] as LaunchCommand['argv'],
      cwd: '/',
      env: {
        PATH: `${PATH}:${PROGRAM_DIR}/${COMMANDS}`,
        HOME: '/root',
        USER: 'root',
        LANG: 'C.UTF-8',
        [SANDBOX_MARK_VARIABLE]: markOf(files.directory),
      },
      bubblewrap_args: [
        ...this.#namespaces(files.sandbox_id),
        ...network.bubblewrap_args,
        ...['--bind', rootfs, '/'],
        // A folder can be renamed with the mount points in it; one that is a mount point itself cannot.
        ...foldersAbove(mounted).flatMap((path) => ['--bind', join(rootfs, path), path]),
        ...parts.flatMap(({ path, is_there, is_directory }) =>
          readOnly(ownEtcFile(etc, path) ?? (is_there ? path : cover(is_directory)), path),
        ),
        ...['--proc', '/proc'],
        ...kernelParts().flatMap(({ path, is_hidden, is_directory }) =>
          readOnly(is_hidden ? cover(is_directory) : path, path),
        ),
        ...['--dev', '/dev', '--bind', run, RUN_DIR],
        ...readOnly(program, PROGRAM_DIR),
        ...['--unsetenv', SANDBOX_MARK_VARIABLE, '--chdir', '/root'],
      ],
      seccomp_filter: this.#walls.seccomp_filter,
    };
  }
}

/** Identity, webhook and secret are sent over the socket, never on a command line. */
export function daemonOptions(state_dir: string, run_dir: string, port: number): string[] {
  return [
    ...['--await-init', '--port', String(port), '--state-dir', state_dir],
    ...['--control-socket', join(run_dir, SOCKET), '--control-token-file', join(run_dir, TOKEN)],
  ];
}

/** The socket's name in the run directory, until the sandbox is ready. */
export const SOCKET = 'control.sock';
/** The token's name in the run directory, until the sandbox is ready. */
export const TOKEN = 'control-token';
