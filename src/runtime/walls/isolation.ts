import { join } from 'node:path';
import type { SandboxFiles } from '../local/sandbox-files.ts';
import type { SandboxNetwork } from '../networks/local-networks.ts';
import { SOCKET, TOKEN } from '../rootfs.ts';

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
  terminals_max: number;
}

/** Identity, webhook and secret are sent over the socket, never on a command line. */
export function daemonOptions(state_dir: string, run_dir: string, port: number): string[] {
  return [
    ...['--await-init', '--port', String(port), '--state-dir', state_dir],
    ...['--control-socket', join(run_dir, SOCKET), '--control-token-file', join(run_dir, TOKEN)],
  ];
}
