import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { NODE_FLAGS } from '../../base/engine/flags.ts';
import { startTool } from '../../base/run-tool.ts';
import { TO_PROGRAM } from '../../base/start-program.ts';
import { StartError } from '../../contract/errors.ts';
import { markOf, SANDBOX_MARK_VARIABLE } from '../local/host-process.ts';
import { COMMANDS, type ProgramCopies, programIn } from '../local/program.ts';
import type { SandboxFiles } from '../local/sandbox-files.ts';
import { ownEtcFile } from '../networks/etc-files.ts';
import type { SandboxNetwork } from '../networks/local-networks.ts';
import { foldersAbove, hostParts, PROGRAM_DIR, RUN_DIR, STATE_DIR } from '../rootfs.ts';
import { seccompFilter } from '../seccomp/filter.ts';
import { daemonOptions, type Isolation, type LaunchCommand, PATH, type SandboxUser } from './isolation.ts';
import { kernelParts } from './kernel-parts.ts';
import { noPrelude, type Pieces, type Prelude, preludeOf } from './prelude.ts';
import { FIRST_USER } from './sandbox-users.ts';

const CONFINEMENT = [
  ...['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
  ...['--cap-drop', 'ALL', '--new-session'],
];
/** The daemon writes its log to descriptor 4, which the init of the sandbox, unlike the daemon, does not keep open. */
const LOG_ON_4 = ['/bin/sh', '-c', 'exec "$0" "$@" >&4 2>&4 3<&- 4>&-'];

const SECCOMP_FD = '5';
const PROBE_TERMINALS = 1;

/** One user without rights outside, who cannot create further namespaces. */
const USER_NAMESPACE = ['--unshare-user', '--uid', '0', '--gid', '0', '--disable-userns'];

/** A set of walls around a sandbox. */
interface Walls {
  /** Whether each sandbox has a user of its own, to whom its root is mapped. */
  has_users: boolean;
  /** Whether it is prepared as root in a mount namespace of its own, with read-only device nodes. */
  has_prelude: boolean;
  /** Bubblewrap's options for a user namespace; empty without one. */
  user_namespace: string[];
  seccomp_filter: Buffer | null;
}

/** What is assumed until the machine was asked. */
const STRICTEST: Walls = {
  has_users: false,
  has_prelude: false,
  user_namespace: USER_NAMESPACE,
  seccomp_filter: null,
};

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
    const { argv, pieces, terminals } = this.#prelude({ rootfs: '/usr' }, PROBE_TERMINALS, null);
    const args = [...this.#namespaces('probe'), '--ro-bind', '/', '/', '--ro-bind', pieces.rootfs as string];
    const all = [...argv, ...this.#asUser(FIRST_USER, null), 'bwrap', ...args, '/usr'];
    const command = [...all, '--proc', '/proc', ...devices(terminals), '--', '/bin/true'];
    const stdio = ['ignore', 'ignore', 'pipe', 'ignore', 'ignore', TO_PROGRAM] as const;
    const { program, problem, said } = await startTool(command, stdio, { path: this.#path });
    const filter = program.child.stdio[Number(SECCOMP_FD)] as Writable;
    filter.on('error', () => {}); // it has ended; its exit is reported below
    filter.end(this.#walls.seccomp_filter ?? '');
    const { refusal } = await program.ended;
    if (refusal !== 'ENOENT') return (await problem) && (said().trim() || problem);
    if (command[0] !== 'bwrap') return `${command[0]} is not installed (Debian's package util-linux)`;
    return 'bubblewrap is not installed: apt-get install bubblewrap; --runtime local-unsafe isolates nothing';
  }

  #prelude(pieces: Pieces, terminals_max: number, files: SandboxFiles | null): Prelude {
    return this.#walls.has_prelude ? preludeOf(pieces, terminals_max, files) : noPrelude(pieces);
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
  command(
    files: SandboxFiles,
    { user, processes_max, terminals_max }: SandboxUser,
    network: SandboxNetwork,
  ): LaunchCommand {
    const program_version = this.#programs.version();
    const installed = this.#programs.installed(program_version);
    const own: Pieces = network.etc === null ? {} : { etc: network.etc };
    const sources = { rootfs: files.rootfs, run: files.run, program: installed.folder, ...own };
    const { argv, pieces, terminals } = this.#prelude(sources, terminals_max, files);
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
        ...devices(terminals),
        ...['--bind', run, RUN_DIR],
        ...readOnly(program, PROGRAM_DIR),
        ...['--unsetenv', SANDBOX_MARK_VARIABLE, '--chdir', '/root'],
      ],
      seccomp_filter: this.#walls.seccomp_filter,
    };
  }
}

/**
 * Sets of walls from the strictest to the weakest: some hosts forbid user namespaces, to all or to everybody but root;
 * some kernels have no filters.
 */
function candidates(): Walls[] {
  const filter = seccompFilter(process.arch);
  return [...new Set([filter, null])].flatMap((seccomp_filter) => [
    ...(isRoot()
      ? [{ has_users: true, has_prelude: true, user_namespace: USER_NAMESPACE, seccomp_filter }]
      : []),
    ...(isRoot() ? [true, false] : [false]).flatMap((has_prelude) =>
      [USER_NAMESPACE, []].map((user_namespace) => ({
        has_users: false,
        has_prelude,
        user_namespace,
        seccomp_filter,
      })),
    ),
  ]);
}

/** The devices of a sandbox, with its terminals. */
function devices(terminals: string | null): string[] {
  return ['--dev', '/dev', ...(terminals === null ? [] : ['--dev-bind', terminals, '/dev/pts'])];
}

/** A phrase for each wall that is missing. `why`: the reason why stricter walls do not work. */
function missingWalls(walls: Walls, why: string | null): string[] {
  const { has_users, has_prelude, user_namespace, seccomp_filter } = walls;
  const missing: [boolean, string][] = [
    [isRoot() && !has_users, `sandboxes have no user of their own: ${firstLine(why)}`],
    [
      !isRoot() && !has_users,
      "sandboxes have the manager's user: one may take all that the kernel has of inotify, pipes, message queues and signals for it",
    ],
    [isRoot() && !has_prelude, "the host's device nodes are not read-only in sandboxes"],
    [!has_prelude, 'one sandbox may take all terminals that this machine has'],
    [user_namespace.length === 0, 'sandboxes have no user namespace'],
    [seccomp_filter === null, 'system calls of sandboxes are not filtered'],
  ];
  return missing.flatMap(([is_missing, phrase]) => (is_missing ? [phrase] : []));
}

function firstLine(text: string | null): string {
  return text?.split('\n')[0] ?? 'it has not been tried';
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}
