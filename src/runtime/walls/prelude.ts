import { existsSync, lstatSync } from 'node:fs';
import { dirname } from 'node:path';
import type { SandboxFiles } from '../local/sandbox-files.ts';

/**
 * Runs as root in a private mount namespace, before bubblewrap. The host's device nodes become read-only: a sandbox whose
 * root is the host's would own them and could change their mode; writing to the devices still works. In the folder `$1` the
 * sandbox's pieces are mounted as the table `$2` says: its user cannot traverse the data directory. So is a file system of
 * terminals with a bound, which the machine has one table of. Then the namespace lets
 * go of all sandboxes' disks below `$3`, and of their networks, which it would keep in use.
 */
const SCRIPT = `set -e
stage=$1 table=$2 data=$3; shift 3
mount --rbind -o ro /dev /dev
mount -t tmpfs -o mode=0755,size=64k,nosuid,nodev,noexec tmpfs "$stage"
printf %s "$table" > "$stage/table"
mount --all --fstab "$stage/table"
umount --lazy --no-canonicalize --internal-only --no-mtab \${data:+"$data"/*/disk} /run/netns 2>/dev/null || :
exec "$@"`;

/** Folders that exist on every system and that nothing of a sandbox comes from, unless the data directory is in one. */
const STAGES = ['/mnt', '/media', '/srv', '/opt', '/tmp'];

/** Folders by the name under which bubblewrap finds them. */
export type Pieces = Record<string, string>;

/** What bubblewrap is started with, and where it then finds the pieces. */
export interface Prelude {
  argv: string[];
  pieces: Pieces;
  /** Where its terminals are; null: those that bubblewrap makes, without a bound. */
  terminals: string | null;
}

/** Without a prelude the pieces are found where they are. */
export function noPrelude(pieces: Pieces): Prelude {
  return { argv: [], pieces, terminals: null };
}

/** The prelude that shows these pieces, and a number of terminals at most. `files`: the sandbox's, null in a probe. */
export function preludeOf(pieces: Pieces, terminals_max: number, files: SandboxFiles | null): Prelude {
  const stage = stageFor(Object.values(pieces));
  const data = files && existsSync(files.disk) ? dirname(files.directory) : '';
  const names = Object.entries(pieces);
  const table = names.map(
    ([name, path]) => `${escaped(path)} ${stage}/${name} none bind,x-mount.mkdir 0 0\n`,
  );
  const terminals = `${stage}/terminals`;
  // As bubblewrap makes it.
  const options = `newinstance,ptmxmode=0666,mode=0620,max=${terminals_max},nosuid,noexec,x-mount.mkdir`;
  table.push(`devpts ${terminals} devpts ${options} 0 0\n`);
  return {
    argv: [
      ...['unshare', '--mount', '--propagation', 'private'],
      ...['/bin/sh', '-c', SCRIPT, 'sh', stage, table.join(''), data],
    ],
    pieces: Object.fromEntries(Object.keys(pieces).map((name) => [name, `${stage}/${name}`])),
    terminals,
  };
}

/** As fstab(5) has it. */
function escaped(path: string): string {
  return path.replaceAll(/[\s\\]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`);
}

/** A folder that hides none of the pieces. */
function stageFor(paths: string[]): string {
  const isFree = (stage: string) =>
    lstatSync(stage, { throwIfNoEntry: false })?.isDirectory() &&
    paths.every((path) => !`${path}/`.startsWith(`${stage}/`));
  return STAGES.find(isFree) ?? '/mnt';
}
