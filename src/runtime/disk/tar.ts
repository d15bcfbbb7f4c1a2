import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';

/**
 * `tar` with at most 512 MiB of the host's memory: it keeps the paths of all folders on its way, and a sandbox can nest
 * folders as deep as it has inodes.
 */
const BOUNDED = ['-c', 'ulimit -v 524288 && exec tar "$@"', 'tar'];
const FLAGS = ['--xattrs', '--acls', '--numeric-owner'];

/** The arguments of `/bin/sh` that make it `tar` in `folder`: with owners, modes, attributes and links as they are. */
export function tarIn(folder: string, ...args: string[]): string[] {
  return [...BOUNDED, '-C', folder, ...FLAGS, ...args];
}

/** Unpacks what comes on standard input. */
export const UNPACKING = ['-xpf', '-'];
/** Packs to standard output, sparse files as such. */
export const PACKING = ['--sparse', '--warning=no-file-ignored', '-cf', '-'];

/** Waits for the end of `tar`; null if it has done its work, else the first line that it reported. */
export async function tarProblem(tar: ChildProcess & { stderr: Readable }): Promise<string | null> {
  const [output, [code]] = await Promise.all([text(tar.stderr), once(tar, 'close')]);
  return code === 0 ? null : output.trim().split('\n')[0] || `tar exited with ${code}`;
}
