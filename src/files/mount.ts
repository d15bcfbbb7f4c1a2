import { closeSync, constants, openSync, readFileSync } from 'node:fs';
import { ApiError } from '../contract/errors.ts';
import { O_PATH } from './o-path.ts';

/** The mount of this process's root directory, which nobody can take away. */
let root_mount: string | null = null;

/**
 * Throws `forbidden` if what is open lies in a mount namespace other than this process's, as `/proc/<pid>/root` leads to:
 * its path there says nothing about where it is here. Source: contract section 4, "Files".
 */
export function checkOwnMount(fd: number): void {
  const mount = mountOf(fd);
  if (mount === rootMount() || ownMounts().includes(mount)) return;
  throw new ApiError('forbidden', "This lies in another mount namespace, which file operations don't reach.");
}

function rootMount(): string {
  if (root_mount === null) {
    const fd = openSync('/', O_PATH | constants.O_DIRECTORY);
    root_mount = mountOf(fd);
    closeSync(fd);
  }
  return root_mount;
}

/** Numbers are given again once a mount has gone, so that they cannot be kept. */
function ownMounts(): string[] {
  const lines = readFileSync('/proc/self/mountinfo', 'latin1').split('\n');
  return lines.map((line) => line.slice(0, line.indexOf(' ')));
}

function mountOf(fd: number): string {
  const [, id = ''] = /^mnt_id:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1')) ?? [];
  return id;
}
