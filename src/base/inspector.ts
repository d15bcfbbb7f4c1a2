/** Given to Node wherever a program is started: from its first instruction on SIGUSR1 opens no inspector. */
export const NODE_FLAGS = ['--disable-sigusr1'];

/**
 * Opens no inspector from here on, and closes one that a signal or a variable of the environment has opened before.
 * One that is asked for on the command line stays.
 */
export function refuseInspector(): void {
  process.on('SIGUSR1', () => {});
  const is_out_of_reach =
    NODE_FLAGS.every((flag) => process.execArgv.includes(flag)) && !process.env.NODE_OPTIONS;
  // Loaded only where it may be open: it takes as long as a good part of the start.
  if (is_out_of_reach || process.execArgv.some((flag) => flag.startsWith('--inspect'))) return;
  const inspector = process.getBuiltinModule('node:inspector');
  if (inspector.url() !== undefined) inspector.close();
}
