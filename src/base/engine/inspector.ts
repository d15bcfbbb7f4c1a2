import { NO_SIGUSR1 } from './flags.ts';

/**
 * Keeps the inspector closed from now on, and closes one that a signal or an environment variable has opened. An
 * inspector requested on the command line stays open.
 */
export function refuseInspector(): void {
  process.on('SIGUSR1', () => {});
  const is_out_of_reach = process.execArgv.includes(NO_SIGUSR1) && !process.env.NODE_OPTIONS;
  // Loaded only if it may be open: loading takes a good part of the start time.
  if (is_out_of_reach || process.execArgv.some((flag) => flag.startsWith('--inspect'))) return;
  const inspector = process.getBuiltinModule('node:inspector');
  if (inspector.url() !== undefined) inspector.close();
}
