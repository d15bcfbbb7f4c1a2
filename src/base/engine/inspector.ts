const NO_SIGNAL = '--disable-sigusr1';

/**
 * Flags for every start of Node. With the first, SIGUSR1 never opens an inspector. With the second, hot functions are
 * optimised one after the other in their own thread, for up to 10 ms each: what several compilations at a time take from
 * the C library lies between what stays, 10 to 20 MB that it never gives back.
 */
export const NODE_FLAGS = [NO_SIGNAL, '--no-concurrent-recompilation'];

/**
 * Keeps the inspector closed from now on, and closes one that a signal or an environment variable has opened. An
 * inspector requested on the command line stays open.
 */
export function refuseInspector(): void {
  process.on('SIGUSR1', () => {});
  const is_out_of_reach = process.execArgv.includes(NO_SIGNAL) && !process.env.NODE_OPTIONS;
  // Loaded only if it may be open: loading takes a good part of the start time.
  if (is_out_of_reach || process.execArgv.some((flag) => flag.startsWith('--inspect'))) return;
  const inspector = process.getBuiltinModule('node:inspector');
  if (inspector.url() !== undefined) inspector.close();
}
