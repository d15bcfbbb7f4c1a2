import { checked, defineStructure, libc } from '../../../base/linux/libc.ts';

const BIND = 0x1000;
const MOVE = 0x2000;
const RECURSIVE = 0x4000;
const PRIVATE = 0x40000;
const DETACH = 2;
const PIVOT_ROOT: Partial<Record<NodeJS.Architecture, number>> = { x64: 155, arm64: 41 };

const SET_SECCOMP = 22;
const SECCOMP_FILTER = 2;
const DROP_BOUNDING = 24;
const SET_NO_NEW_PRIVILEGES = 38;
const AMBIENT = 47;
const CLEAR_AMBIENT = 4;
const CAPABILITY_VERSION_3 = 0x20080522;
/** More than any kernel has. */
const CAPABILITIES_MAX = 64;

defineStructure('sock_fprog', { length: 'uint16_t', filter: 'const void *' });
const call = {
  mount: libc.func(
    'int mount(const char *source, const char *target, const char *type, unsigned long flags, const char *data)',
  ),
  umount2: libc.func('int umount2(const char *target, int flags)'),
  chdir: libc.func('int chdir(const char *path)'),
  syscall: libc.func('long syscall(long number, const char *first, const char *second)'),
  prctl: libc.func(
    'int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)',
  ),
  filter: libc.func('int prctl(int option, unsigned long mode, sock_fprog *program)'),
  capset: libc.func('int capset(const void *header, const void *data)'),
  execve: libc.func('int execve(const char *path, const char **argv, const char **env)'),
};

/** Keeps later mounts of this namespace from others, and those of others from it. Throws SystemError. */
export function makePrivate(): void {
  checked('mount', call.mount(null, '/', null, RECURSIVE | PRIVATE, null));
}

/** Mounts a file system. Throws SystemError. */
export function mount(type: string, target: string, options: string): void {
  checked(`mount ${type}`, call.mount(type, target, type, 0, options));
}

/** Shows `source`, without what is mounted below it, at `target`. Throws SystemError. */
export function bind(source: string, target: string): void {
  checked(`mount --bind ${source}`, call.mount(source, target, null, BIND, null));
}

/** Shows `source`, with all that is mounted below it, at `target`. Throws SystemError. */
export function bindAll(source: string, target: string): void {
  checked(`mount --rbind ${source}`, call.mount(source, target, null, BIND | RECURSIVE, null));
}

/** Moves a mount, with all that is mounted below it. Throws SystemError. */
export function move(source: string, target: string): void {
  checked(`mount --move ${source}`, call.mount(source, target, null, MOVE, null));
}

/**
 * Makes a mount the root of every process in this namespace, and lets go of the one before: nothing finds a way back to
 * it. Throws SystemError.
 */
export function changeRoot(path: string): void {
  const number = PIVOT_ROOT[process.arch];
  if (number === undefined) throw new Error(`${process.arch} is not supported`);
  checked('chdir', call.chdir(path));
  checked('pivot_root', call.syscall(number, '.', '.'));
  checked('umount', call.umount2('.', DETACH));
  checked('chdir', call.chdir('/'));
}

/**
 * Gives up every capability for good, of this thread and of all that it starts: no file gives it one again. `filter`: the
 * system calls that remain, as BPF. Throws SystemError.
 */
export function dropPrivileges(filter: Buffer): void {
  checked('prctl', call.prctl(AMBIENT, CLEAR_AMBIENT, 0, 0, 0));
  for (let number = 0; number < CAPABILITIES_MAX; number++) {
    if (call.prctl(DROP_BOUNDING, number, 0, 0, 0) < 0) break; // the kernel has no more
  }
  const header = Buffer.alloc(8);
  header.writeUInt32LE(CAPABILITY_VERSION_3);
  checked('capset', call.capset(header, Buffer.alloc(24)));
  checked('prctl', call.prctl(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0));
  checked('seccomp', call.filter(SET_SECCOMP, SECCOMP_FILTER, { length: filter.length / 8, filter }));
}

/** Becomes another program, with the rights of this thread. Throws SystemError. */
export function become(path: string, argv: string[]): never {
  checked(`exec ${path}`, call.execve(path, [path, ...argv, null], [null]));
  throw new Error('unreachable');
}
