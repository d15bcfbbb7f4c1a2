import {
  chmodSync,
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { kernelRandom } from '../base/entropy.ts';

/** Where the sandbox's own daemon keeps its outbox, on the sandbox's persistent root file system. */
export const STATE_DIR = '/var/lib/sandboxd';
export const RUN_DIR = '/run/sandboxd';
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

/** Links on most systems, directories on others, and not all of them are there. */
const PROGRAM_FOLDERS = ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'];

/**
 * What programs need of the host's `/etc`: names, certificates, libraries, times. No account, no key. Folders end with
 * a slash.
 */
const HOST_ETC = [
  'alternatives/',
  'bash.bashrc',
  'ca-certificates/',
  'ca-certificates.conf',
  'hosts',
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d/',
  'localtime',
  'mime.types',
  'nsswitch.conf',
  'protocols',
  'resolv.conf',
  'services',
  'ssl/certs/',
  'ssl/openssl.cnf',
  'timezone',
];
/** What would be loaded into every program, the daemon of a fork included. */
const PRELOADED = '/etc/ld.so.preload';

/** A part of the host that the sandbox sees read-only at the same path. */
export interface HostPart {
  path: string;
  is_directory: boolean;
  /** False where the host has none: then it is shown empty, so that the sandbox cannot put its own there. */
  is_there: boolean;
}

/** The host's programs and what they need: what a sandbox's shell, `curl` and usual tools are. */
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

/** The folders in which these paths are, `/` aside, each before those in it. */
export function foldersAbove(paths: string[]): string[] {
  const above = (path: string): string[] => (path === '/' ? [] : [...above(dirname(path)), path]);
  return [...new Set(paths.flatMap((path) => above(dirname(path))))];
}

/**
 * Makes the directories, files and mount points that a sandbox's root needs, and leaves what it holds besides. What
 * is in the way, such as a link that a process of the parent of a fork has put there, is removed, never followed.
 * Nothing may run in it.
 */
export function prepareRootfs(rootfs: string, sandbox_id: string): void {
  mkdirSync(rootfs, { recursive: true, mode: 0o755 });
  chmodSync(rootfs, 0o755);
  for (const [path, mode] of DIRECTORIES) chmodSync(placeDirectory(rootfs, path), mode);
  for (const { path, is_directory } of hostParts()) {
    if (is_directory) placeDirectory(rootfs, path);
    else placeFile(rootfs, path, '');
  }
  for (const [path, text] of FILES) placeFile(rootfs, path, text(sandbox_id));
}

/** The path of the state directory on the host; null where it, or a directory above it, is something else by now. */
export function stateDirOf(rootfs: string): string | null {
  let path = rootfs;
  for (const part of STATE_DIR.split('/').filter(Boolean)) {
    path = join(path, part);
    if (!lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) return null;
  }
  return path;
}

function placeDirectory(rootfs: string, inside: string): string {
  let path = rootfs;
  for (const part of inside.split('/').filter(Boolean)) {
    path = join(path, part);
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat?.isDirectory()) continue;
    if (stat) moveAway(path);
    mkdirSync(path, { mode: 0o755 });
    chmodSync(path, 0o755);
  }
  return path;
}

function placeFile(rootfs: string, inside: string, text: string): void {
  const path = join(placeDirectory(rootfs, dirname(inside)), inside.slice(inside.lastIndexOf('/') + 1));
  if (lstatSync(path, { throwIfNoEntry: false })?.isFile()) return;
  moveAway(path);
  const file = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o644);
  writeSync(file, text);
  closeSync(file);
}

/** Frees a name in one step, however much is under it. */
function moveAway(path: string): void {
  if (!lstatSync(path, { throwIfNoEntry: false })) return;
  renameSync(path, `${path}.replaced-${kernelRandom(6).toString('hex')}`);
}

/** Following links, as a mount does; null where there is nothing. */
function isDirectory(path: string): boolean | null {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? null;
}
