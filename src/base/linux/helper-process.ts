import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';

/**
 * Starts a helper of the daemon: one that reads of processes, that watches, or that touches an account's files. By Node
 * itself, in this file alone: every daemon starts the first, and with execa, which is for all else, each sandbox would hold
 * 3 MB more. Its environment is the one given. Throws the system's error if there is no descriptor left; one that cannot be
 * started has no `pid` and emits `error`.
 */
export function startHelper(
  [file = '', ...args]: readonly string[],
  options: SpawnOptions & { env: Record<string, string> },
): ChildProcess {
  return spawn(file, args, options);
}
