import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { NODE_FLAGS } from '../base/inspector.ts';
import { StartError } from '../contract/errors.ts';
import { markOf, SANDBOX_MARK_VARIABLE } from './host-process.ts';
import { kernelParts } from './kernel-parts.ts';
import type { ProgramCopies } from './program.ts';
import { foldersAbove, hostParts, PROGRAM_DIR, RUN_DIR, STATE_DIR } from './rootfs.ts';
import type { SandboxFiles } from './sandbox-files.ts';
import { seccompFilter } from './seccomp/filter.ts';

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

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
  /** Throws StartError if this machine does not support it. */
  check(): Promise<void>;
  /** What this machine does not allow, a phrase for each; known after `check`. */
  limitations(): string[];
  /** The command that starts the sandbox's daemon. */
  command(files: SandboxFiles): LaunchCommand;
}

const NAMESPACES = ['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'];
/** One user without rights outside, who cannot create further namespaces. */
const USER_NAMESPACE = ['--unshare-user', '--uid', '0', '--gid', '0', '--disable-userns'];
const CONFINEMENT = ['--cap-drop', 'ALL', '--new-session'];
/**
 * Makes the host's device nodes read-only in a private mount namespace: otherwise a sandbox of a manager that runs as
 * root owns them, and could change their mode on the host. Writing to the devices still works.
 */
const READ_ONLY_DEVICES = [
  ...['unshare', '--mount', '--propagation', 'private', '/bin/sh', '-c'],
  'mount --bind /dev /dev && mount -o remount,bind,ro /dev && exec "$@"',
  'sh',
];
/** The daemon writes its log to descriptor 4, which the init of the sandbox, unlike the daemon, does not keep open. */
const LOG_ON_4 = ['/bin/sh', '-c', 'exec "$0" "$@" >&4 2>&4 3<&- 4>&-'];

const SECCOMP_FD = '5';

/** A set of walls, from the strictest to the weakest. */
interface Walls {
  devices: string[];
  user_namespace: string[];
  seccomp_filter: Buffer | null;
}

/**
 * Isolation by bubblewrap: mount, pid, ipc, uts and (where the kernel grants it) user namespaces of its own, no
 * capabilities, a filter of system calls, its own init that reaps. The network is the host's. Source: contract section 7, `--runtime local`.
 */
export class Bubblewrap implements Isolation {
  readonly #programs: ProgramCopies;
  readonly #path: string;
  #walls: Walls = { devices: [], user_namespace: USER_NAMESPACE, seccomp_filter: null };

  /** `path`: the folders that are searched for `bwrap`. */
  constructor(programs: ProgramCopies, path = PATH) {
    this.#programs = programs;
    this.#path = path;
  }

  /** Finds the strictest walls that work here. Throws StartError if none do. */
  async check(): Promise<void> {
    let why: string | null = null;
    for (const walls of candidates()) {
      this.#walls = walls;
      why = await this.#probe();
      if (why === null) return;
    }
    throw new StartError(`--runtime local cannot isolate sandboxes: ${why}`);
  }

  /** The walls that `check` had to do without. */
  limitations(): string[] {
    const { devices, user_namespace, seccomp_filter } = this.#walls;
    const missing: [boolean, string][] = [
      [isRoot() && devices.length === 0, "the host's device nodes are not read-only in sandboxes"],
      [user_namespace.length === 0, 'sandboxes have no user namespace'],
      [seccomp_filter === null, 'system calls of sandboxes are not filtered'],
    ];
    return missing.flatMap(([is_missing, phrase]) => (is_missing ? [phrase] : []));
  }

  /** Null if a sandbox can be created; otherwise the reason. */
  async #probe(): Promise<string | null> {
    const args = [...this.#namespaces('probe'), '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev'];
    const [program = '', ...rest] = [...this.#walls.devices, 'bwrap', ...args, '--', '/bin/true'];
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
      return "bubblewrap is not installed (Debian's package bubblewrap); --runtime local-unsafe isolates nothing";
    }
  }

  #namespaces(hostname: string): string[] {
    const { user_namespace, seccomp_filter } = this.#walls;
    const filter = seccomp_filter === null ? [] : ['--seccomp', SECCOMP_FD];
    return [...user_namespace, ...NAMESPACES, ...CONFINEMENT, ...filter, '--hostname', hostname];
  }

  /** The command line of bubblewrap with the daemon in it. */
  command(files: SandboxFiles): LaunchCommand {
    const program_version = this.#programs.version();
    const { folder, empty_file, empty_folder } = this.#programs.installed(program_version);
    const readOnly = (from: string, to: string) => ['--ro-bind', from, to];
    const cover = (is_directory: boolean) => (is_directory ? empty_folder : empty_file);
    const parts = hostParts();
    const mounted = [...parts.map(({ path }) => path), PROGRAM_DIR, RUN_DIR];
    return {
      program_version,
      argv: [
        ...this.#walls.devices,
        'bwrap',
        ...['--args', '3', '--', ...LOG_ON_4, `${PROGRAM_DIR}/node`, ...NODE_FLAGS],
        ...[`${PROGRAM_DIR}/dist/sandboxd.cjs`, ...daemonOptions(STATE_DIR, RUN_DIR)],
      ] as LaunchCommand['argv'],
      cwd: '/',
      env: {
        PATH,
        HOME: '/root',
        USER: 'root',
        LANG: 'C.UTF-8',
        [SANDBOX_MARK_VARIABLE]: markOf(files.directory),
      },
      bubblewrap_args: [
        ...this.#namespaces(files.sandbox_id),
        ...['--bind', files.rootfs, '/'],
        // A folder can be renamed with the mount points in it; one that is a mount point itself cannot.
        ...foldersAbove(mounted).flatMap((path) => ['--bind', join(files.rootfs, path), path]),
        ...parts.flatMap(({ path, is_there, is_directory }) =>
          readOnly(is_there ? path : cover(is_directory), path),
        ),
        ...['--proc', '/proc'],
        ...kernelParts().flatMap(({ path, is_hidden, is_directory }) =>
          readOnly(is_hidden ? cover(is_directory) : path, path),
        ),
        ...['--dev', '/dev', '--bind', files.run, RUN_DIR],
        ...readOnly(folder, PROGRAM_DIR),
        ...['--unsetenv', SANDBOX_MARK_VARIABLE, '--chdir', '/root'],
      ],
      seccomp_filter: this.#walls.seccomp_filter,
    };
  }
}

/** Some hosts forbid user namespaces, which root does not need; some kernels have no filters. */
function candidates(): Walls[] {
  const filter = seccompFilter(process.arch);
  return [...new Set([filter, null])].flatMap((seccomp_filter) =>
    (isRoot() ? [READ_ONLY_DEVICES, []] : [[]]).flatMap((devices) =>
      [USER_NAMESPACE, []].map((user_namespace) => ({ devices, user_namespace, seccomp_filter })),
    ),
  );
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** `local-unsafe`: a sandbox's processes are not isolated from the host; paths are the host's. */
export class NoIsolation implements Isolation {
  readonly #programs: ProgramCopies;

  constructor(programs: ProgramCopies) {
    this.#programs = programs;
  }

  /** Always possible. */
  async check(): Promise<void> {}

  /** One phrase: there are no walls. */
  limitations(): string[] {
    return ['sandboxes are not isolated'];
  }

  /** The daemon's own command line. */
  command(files: SandboxFiles): LaunchCommand {
    const program_version = this.#programs.version();
    const { node, dist } = this.#programs.installed(program_version);
    const home = join(files.rootfs, 'root');
    // By its descriptor: the path of a socket is limited in length.
    const options = daemonOptions(join(files.rootfs, STATE_DIR), '/proc/self/fd/3');
    return {
      program_version,
      argv: [node, ...NODE_FLAGS, join(dist, 'sandboxd.cjs'), ...options],
      cwd: home,
      env: { PATH, HOME: home, LANG: 'C.UTF-8', [SANDBOX_MARK_VARIABLE]: markOf(files.directory) },
      bubblewrap_args: null,
      seccomp_filter: null,
    };
  }
}

/** Identity, webhook and secret are sent over the socket, never on a command line. */
function daemonOptions(state_dir: string, run_dir: string): string[] {
  return [
    ...['--await-init', '--port', '0', '--state-dir', state_dir],
    ...['--control-socket', join(run_dir, SOCKET), '--control-token-file', join(run_dir, TOKEN)],
  ];
}

/** The socket's name in the run directory, until the sandbox is ready. */
export const SOCKET = 'control.sock';
/** The token's name in the run directory, until the sandbox is ready. */
export const TOKEN = 'control-token';
