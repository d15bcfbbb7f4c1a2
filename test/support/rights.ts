import { spawnSync } from 'node:child_process';

/** What whoever runs the tests may do here. A test that needs more asks for it, and is skipped with the reason. */

export const IS_ROOT = process.getuid?.() === 0;

/** Whether file systems can be mounted: not by an ordinary user, nor by root in a plain container. */
export const CAN_MOUNT =
  IS_ROOT && spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'none', '/mnt']).status === 0;

/** Behind the name of a test that is skipped where nothing can be mounted. */
export const unlessMounts = CAN_MOUNT ? '' : ' (skipped: no file system can be mounted here)';

/** Options of `unshare` that start a program in a process table of its own. */
export const NEW_TABLE = [
  ...(IS_ROOT ? [] : ['--user', '--map-root-user']),
  ...['--pid', '--fork', '--kill-child', '--mount-proc'],
];

/** Whether a program can have a process table of its own. */
export const HAS_NEW_TABLE = spawnSync('unshare', [...NEW_TABLE, 'true']).status === 0;

/** Behind the name of a test that is skipped where there is none. */
export const unlessNewTable = HAS_NEW_TABLE ? '' : ' (skipped: no process table of its own can be made here)';

/** The start of a command line that runs the rest as an account without rights: nobody's, or one's own. */
export const AS_ORDINARY_USER = IS_ROOT
  ? ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']
  : ['env'];
