import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { StartError } from '../contract/errors.ts';
import { MARK_VARIABLE } from './host-process.ts';
import type { ProgramCopies } from './program.ts';
import { hostParts, PROGRAM_DIR, RUN_DIR, STATE_DIR } from './rootfs.ts';
import type { SandboxFiles } from './sandbox-files.ts';

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** How a sandbox's daemon is started. */
export interface LaunchCommand {
  argv: [string, ...string[]];
  /** The version of the daemon's program that it runs. */
  program_version: string;
  cwd: string;
  env: Record<string, string>;
  /** Arguments for bubblewrap on descriptor 3, so that no process list shows the host's paths; null without it: then
   * that descriptor is the run directory's. */
  bubblewrap_args: string[] | null;
}

/** What keeps a sandbox from the host. */
export interface Isolation {
  /** Throws StartError where it cannot be had here. */
  check(): Promise<void>;
  command(files: SandboxFiles): LaunchCommand;
}

const NAMESPACES = ['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'];
/** One user, who has no rights outside of it, and no way to make another namespace. */
const USER_NAMESPACE = ['--unshare-user', '--uid', '0', '--gid', '0', '--disable-userns'];
const CONFINEMENT = ['--cap-drop', 'ALL', '--new-session'];

/**
 * Isolation by bubblewrap: mount, pid, ipc, uts and (where the kernel grants it) user namespaces of its own, no
 * capabilities, its own init that reaps. The network is the host's. Source: contract section 7, `--runtime local`.
 */
export class Bubblewrap implements Isolation {
  readonly #programs: ProgramCopies;
  readonly #path: string;
  #user_namespace = USER_NAMESPACE;

  /** `path`: the folders in which `bwrap` is looked for. */
  constructor(programs: ProgramCopies, path = PATH) {
    this.#programs = programs;
    this.#path = path;
  }

  async check(): Promise<void> {
    if ((await this.#tried()) === null) return;
    // Some hosts forbid user namespaces; root can do without.
    this.#user_namespace = [];
    const why = await this.#tried();
    if (why !== null) throw new StartError(`--runtime local cannot isolate sandboxes: ${why}`);
  }

  /** Null where a sandbox can be made; otherwise why not. */
  async #tried(): Promise<string | null> {
    const args = [...this.#namespaces('probe'), '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev'];
    const probe = spawn('bwrap', [...args, '--', '/bin/true'], {
      env: { PATH: this.#path },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    try {
      const [why, [code]] = await Promise.all([text(probe.stderr), once(probe, 'close')]);
      return code === 0 ? null : why.trim() || `bwrap ended with ${code}`;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      return "bubblewrap is not installed (Debian's package bubblewrap); --runtime local-unsafe isolates nothing";
    }
  }

  #namespaces(hostname: string): string[] {
    return [...this.#user_namespace, ...NAMESPACES, ...CONFINEMENT, '--hostname', hostname];
  }

  command(files: SandboxFiles): LaunchCommand {
    const program_version = this.#programs.version();
    const { dist, packages, node } = this.#programs.installed(program_version);
    const readOnly = (from: string, to: string) => ['--ro-bind', from, to];
    return {
      program_version,
      argv: [
        'bwrap',
        ...['--args', '3', '--', `${PROGRAM_DIR}/node`, `${PROGRAM_DIR}/dist/sandboxd.cjs`],
        ...daemonOptions(STATE_DIR, RUN_DIR),
      ],
      cwd: '/',
      env: { PATH, HOME: '/root', USER: 'root', LANG: 'C.UTF-8', [MARK_VARIABLE]: files.directory },
      bubblewrap_args: [
        ...this.#namespaces(files.sandbox_id),
        ...['--bind', files.rootfs, '/'],
        ...hostParts().flatMap(({ path }) => readOnly(path, path)),
        ...['--proc', '/proc', '--dev', '/dev', '--bind', files.run, RUN_DIR],
        ...readOnly(dist, `${PROGRAM_DIR}/dist`),
        ...readOnly(packages, `${PROGRAM_DIR}/node_modules`),
        ...readOnly(node, `${PROGRAM_DIR}/node`),
        ...['--unsetenv', MARK_VARIABLE, '--chdir', '/root'],
      ],
    };
  }
}

/** `local-unsafe`: nothing keeps a sandbox's processes from the host; paths are the host's. */
export class NoIsolation implements Isolation {
  readonly #programs: ProgramCopies;

  constructor(programs: ProgramCopies) {
    this.#programs = programs;
  }

  async check(): Promise<void> {}

  command(files: SandboxFiles): LaunchCommand {
    const program_version = this.#programs.version();
    const { node, dist } = this.#programs.installed(program_version);
    const home = join(files.rootfs, 'root');
    // By its descriptor: the path of a socket is limited in length.
    const options = daemonOptions(join(files.rootfs, STATE_DIR), '/proc/self/fd/3');
    return {
      program_version,
      argv: [node, join(dist, 'sandboxd.cjs'), ...options],
      cwd: home,
      env: { PATH, HOME: home, LANG: 'C.UTF-8', [MARK_VARIABLE]: files.directory },
      bubblewrap_args: null,
    };
  }
}

/** Identity, webhook and secret come over the socket: they are on no command line. */
function daemonOptions(state_dir: string, run_dir: string): string[] {
  return [
    ...['--await-init', '--port', '0', '--state-dir', state_dir],
    ...['--control-socket', join(run_dir, SOCKET), '--control-token-file', join(run_dir, TOKEN)],
  ];
}

/** Names in the run directory, until the sandbox is ready. */
export const SOCKET = 'control.sock';
export const TOKEN = 'control-token';
