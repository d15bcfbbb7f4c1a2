import { close, url } from 'node:inspector';

/** Given to Node wherever a program is started: from its first instruction on SIGUSR1 opens no inspector. */
export const NODE_FLAGS = ['--disable-sigusr1'];

/**
 * Opens no inspector from here on, and closes one that a signal or a variable of the environment has opened before.
 * One that is asked for on the command line stays.
 */
export function refuseInspector(): void {
  process.on('SIGUSR1', () => {});
  if (url() !== undefined && !process.execArgv.some((flag) => flag.startsWith('--inspect'))) close();
}
