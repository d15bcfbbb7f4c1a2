import { readFileSync } from 'node:fs';
import { TestRunner } from 'vitest';
import { succeeds } from './run-sync.ts';

/** What whoever runs the tests may do here. A test that needs more asks for it, and is skipped with the reason. */

const CAP_SYS_PTRACE = 19n;
const CAP_SYS_ADMIN = 21n;

/** Whether it is root's account, with whatever rights. */
export const IS_UID_0 = process.getuid?.() === 0;

/** Whether it is root, and may do what root of a machine may: in a plain container it may not. */
export const IS_ROOT = IS_UID_0 && has(CAP_SYS_PTRACE) && has(CAP_SYS_ADMIN);

function has(capability: bigint): boolean {
  const [, effective = '0'] = /^CapEff:\s*([0-9a-f]+)/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return ((BigInt(`0x${effective}`) >> capability) & 1n) === 1n;
}

/** Whether file systems can be mounted: not by an ordinary user, nor by root in a plain container. */
export const CAN_MOUNT = IS_ROOT && succeeds('unshare', '--mount', 'mount', '-t', 'tmpfs', 'none', '/mnt');

/** Behind the name of a test that is skipped where nothing can be mounted. */
export const unlessMounts = CAN_MOUNT ? '' : ' (skipped: no file system can be mounted here)';

/** Options of `unshare` that start a program in a process table of its own. */
export const NEW_TABLE = [
  ...(IS_ROOT ? [] : ['--user', '--map-root-user']),
  ...['--pid', '--fork', '--kill-child', '--mount-proc'],
];

/** Whether a program can have a process table of its own. */
export const HAS_NEW_TABLE = succeeds('unshare', ...NEW_TABLE, 'true');

/** Behind the name of a test that is skipped where there is none. */
export const unlessNewTable = HAS_NEW_TABLE ? '' : ' (skipped: no process table of its own can be made here)';

/** The start of a command line that runs the rest as an account without rights: nobody's, or one's own. */
export const AS_ORDINARY_USER = IS_ROOT
  ? ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']
  : ['env'];

/** Whether one's own programs can be looked into: root needs the right to trace, since a daemon's memory is private. */
export const CAN_LOOK_INSIDE = !IS_UID_0 || has(CAP_SYS_PTRACE);

/** Skips the test that is running where nobody can look into a daemon. */
export function needsLook(): void {
  if (!CAN_LOOK_INSIDE) TestRunner.getCurrentTest()?.context.skip('daemons cannot be looked into here');
}

/** Whether a sandbox can be isolated: by root of a machine, or where everybody may make user namespaces. */
const CAN_ISOLATE = succeeds('bwrap', '--unshare-pid', '--ro-bind', '/', '/', '--proc', '/proc', 'true');

/** Skips the test that is running where no sandbox can be isolated. */
export function needsIsolation(): void {
  if (!CAN_ISOLATE) TestRunner.getCurrentTest()?.context.skip('sandboxes cannot be isolated here');
}
