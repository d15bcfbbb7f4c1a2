import { join } from 'node:path';
import { NODE_FLAGS } from '../../base/engine/flags.ts';
import { markOf, SANDBOX_MARK_VARIABLE } from '../local/host-process.ts';
import type { ProgramCopies } from '../local/program.ts';
import type { SandboxFiles } from '../local/sandbox-files.ts';
import { STATE_DIR } from '../rootfs.ts';
import { daemonOptions, type Isolation, type LaunchCommand, PATH } from './isolation.ts';

/** `local-unsafe`: a sandbox's processes are not isolated from the host; paths are the host's. */
export class NoIsolation implements Isolation {
  readonly summary = 'sandboxes are NOT isolated from this machine';
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

  /** Never. */
  hasUsers(): boolean {
    return false;
  }

  /** Never: they see the host's. */
  hasRoots(): boolean {
    return false;
  }

  /** The daemon's own command line. */
  command(files: SandboxFiles): LaunchCommand {
    const program_version = this.#programs.version();
    const { node, dist, commands } = this.#programs.installed(program_version);
    const path = `${PATH}:${commands}`;
    const home = join(files.rootfs, 'root');
    // By its descriptor: the path of a socket is limited in length.
    const options = daemonOptions(join(files.rootfs, STATE_DIR), '/proc/self/fd/3', 0);
    return {
      program_version,
      argv: [node, ...NODE_FLAGS, join(dist, 'sandboxd.cjs'), ...options],
      cwd: home,
      env: { PATH: path, HOME: home, LANG: 'C.UTF-8', [SANDBOX_MARK_VARIABLE]: markOf(files.directory) },
      bubblewrap_args: null,
      seccomp_filter: null,
    };
  }
}
