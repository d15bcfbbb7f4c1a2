/** How the scripts of `sandboxctl completion` ask the program itself for candidates. */
export const COMPLETE = '__complete';

/** The commands whose arguments are paths in the sandbox. */
export const PATH_COMMANDS = ['ls', 'cat', 'mv', 'rm', 'mkdir', 'stat', 'watch', 'cp'];
/** The commands whose first argument is the id of a process. */
export const PROCESS_COMMANDS = ['logs', 'signal', 'stop'];
/** The commands below `sandbox` whose argument is the id of a sandbox. */
export const SANDBOX_COMMANDS = ['show', 'pause', 'resume', 'fork', 'refresh', 'delete', 'kill'];

/** Commands and options whose values only the running program knows. */
export interface Asked {
  commands: readonly string[];
  options: readonly string[];
}

/** Those of `sandboxctl`. */
export const ASKED: Asked = {
  commands: [...PATH_COMMANDS, ...PROCESS_COMMANDS, 'sandbox'],
  options: ['--sandbox', '--profile'],
};
