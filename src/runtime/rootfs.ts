import {
  chmodSync,
  closeSync,
  constants,
  fchownSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  statSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { kernelRandom } from '../base/entropy.ts';

/** Where the sandbox's own daemon keeps its outbox, on the sandbox's persistent root file system. */
export const STATE_DIR = '/var/lib/sandboxd';
/** Where the daemon creates its control socket, in the sandbox. */
export const RUN_DIR = '/run/sandboxd';
/** The socket's name in the run directory, until the sandbox is ready. */
export const SOCKET = 'control.sock';
/** The token's name in the run directory, until the sandbox is ready. */
export const TOKEN = 'control-token';
/** The daemon's program, read-only in the sandbox. */
export const PROGRAM_DIR = '/opt/sandboxd';

const DIRECTORIES: [path: string, mode: number][] = [
  ...[
    'dev',
    'etc',
    'home',
    'mnt',
    'opt',
    'proc',
    'run',
    'srv',
    'sys',
    'usr',
    'var',
    'var/lib',
    'var/log',
  ].map((path): [string, number] => [path, 0o755]),
  ['root', 0o700],
  ['tmp', 0o1777],
  ['var/tmp', 0o1777],
  [STATE_DIR, 0o700],
  [RUN_DIR, 0o755],
  [PROGRAM_DIR, 0o755],
];

const FILES: [path: string, text: (sandbox_id: string) => string][] = [
  [
    'etc/passwd',
    () => 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n',
  ],
  ['etc/group', () => 'root:x:0:\nnogroup:x:65534:\n'],
  ['etc/hostname', (sandbox_id) => `${sandbox_id}\n`],
];

/** Links on most systems, directories on others; some may be missing. */
const PROGRAM_FOLDERS = ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'];

/**
 * What programs need from the host's `/etc`: names, certificates, libraries, time zones. No accounts, no keys. Folders
 * end with a slash.
 */
const HOST_ETC = [
  'alternatives/',
  'bash.bashrc',
  'ca-certificates/',
  'ca-certificates.conf',
  'gai.conf',
  'host.conf',
  'hosts',
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d/',
  'localtime',
  'mime.types',
  'netsvc.conf',
  'nsswitch.conf',
  'os-release',
  'protocols',
  'resolv.conf',
  'services',
  'ssl/certs/',
  'ssl/openssl.cnf',
  'svc.conf',
  'timezone',
];
/** Libraries listed here would be loaded into every program, including the daemon of a fork. */
const PRELOADED = '/etc/ld.so.preload';

/** A part of the host that the sandbox sees read-only at the same path. */
export interface HostPart {
  path: string;
  is_directory: boolean;
  /** False if the host has none: then it is shown empty, so that the sandbox cannot add its own. */
  is_there: boolean;
}

/** The host's programs and what they need, which give a sandbox its shell, `curl` and usual tools. */
export function hostParts(): HostPart[] {
  const paths = [
    ...['usr', ...PROGRAM_FOLDERS].map((name) => `/${name}/`),
    ...HOST_ETC.map((name) => `/etc/${name}`),
  ];
  const parts = paths.map((declared) => {
    const path = declared.replace(/\/$/, '');
    const found = isDirectory(path);
    return { path, is_directory: found ?? declared.endsWith('/'), is_there: found !== null };
  });
  return [...parts, { path: PRELOADED, is_directory: false, is_there: false }];
}

/** The parent folders of these paths except `/`, outer ones first. */
export function foldersAbove(paths: string[]): string[] {
  const above = (path: string): string[] => (path === '/' ? [] : [...above(dirname(path)), path]);
  return [...new Set(paths.flatMap((path) => above(dirname(path))))];
}

/**
 * Creates the directories, files and mount points that a sandbox's root needs, and keeps its other contents. An
 * obstacle, such as a link left by a process of a fork's parent, is renamed, never followed. Nothing may run in the root
 * meanwhile. `owner`: the user and group of what is created; null: this program's.
 */
export function prepareRootfs(rootfs: string, sandbox_id: string, owner: number | null): void {
  const root = { rootfs, owner };
  mkdirSync(rootfs, { recursive: true, mode: 0o755 });
  if (owner !== null) lchownSync(rootfs, owner, owner);
  chmodSync(rootfs, 0o755);
  for (const [path, mode] of DIRECTORIES) chmodSync(placeDirectory(root, path), mode);
  for (const { path, is_directory } of hostParts()) {
    if (is_directory) placeDirectory(root, path);
    else placeFile(root, path, '');
  }
  for (const [path, text] of FILES) placeFile(root, path, text(sandbox_id));
}

/** A root where nothing runs, and whose its new folders and files are; null: this program's. */
export interface Root {
  rootfs: string;
  owner: number | null;
}

/**
 * A descriptor of the state directory in a root, whose processes may be changing it: links are not followed. Null if it,
 * or a directory above it, is no directory any more.
 */
export function openStateDir(rootfs: string): number | null {
  const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
  let open = openSync(rootfs, flags);
  for (const part of STATE_DIR.split('/').filter(Boolean)) {
    const above = open;
    try {
      open = openSync(`/proc/self/fd/${above}/${part}`, flags);
    } catch (error) {
      if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
      throw error;
    } finally {
      closeSync(above);
    }
  }
  return open;
}

/** Creates the state directory in a root where nothing runs, as `prepareRootfs` does, and returns its path. */
export function placeStateDir(rootfs: string, owner: number | null): string {
  const path = placeDirectory({ rootfs, owner }, STATE_DIR);
  chmodSync(path, 0o700);
  return path;
}

/** Creates a directory in a root unless it is one, and returns its path; an obstacle is renamed, never followed. */
export function placeDirectory({ rootfs, owner }: Root, inside: string): string {
  let path = rootfs;
  for (const part of inside.split('/').filter(Boolean)) {
    path = join(path, part);
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat?.isDirectory()) continue;
    if (stat) moveAway(path);
    mkdirSync(path, { mode: 0o755 });
    chmodSync(path, 0o755);
    if (owner !== null) lchownSync(path, owner, owner);
  }
  return path;
}

/** Creates a file in a root unless it is one, and returns its path; an obstacle is renamed, never followed. */
export function placeFile(root: Root, inside: string, text: string): string {
  const path = join(placeDirectory(root, dirname(inside)), basename(inside));
  if (lstatSync(path, { throwIfNoEntry: false })?.isFile()) return path;
  moveAway(path);
  const file = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o644);
  writeSync(file, text);
  if (root.owner !== null) fchownSync(file, root.owner, root.owner);
  closeSync(file);
  return path;
}

/** Frees a name in one step, however large the tree below it is. */
function moveAway(path: string): void {
  if (!lstatSync(path, { throwIfNoEntry: false })) return;
  renameSync(path, `${path}.replaced-${kernelRandom(6).toString('hex')}`);
}

/** Follows links, as a mount does; null if nothing exists. */
function isDirectory(path: string): boolean | null {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? null;
}
