import { getSystemErrorName } from 'node:util';
import koffi from 'koffi';

/**
 * The C library, for system calls that Node has no function for. This module loads native code: programs that rarely
 * need it import it on demand.
 */
export const libc = koffi.load('libc.so.6');

const call = {
  mkfifo: libc.func('int mkfifo(const char *path, uint32_t mode)'),
  pipe: libc.func('int pipe2(int *ends, int flags)'),
  read: libc.func('long read(int fd, void *buffer, size_t length)'),
  exit: libc.func('void _exit(int status)'),
  trim: libc.func('int malloc_trim(size_t kept)'),
  poll: libc.func('int ppoll(void *polled, unsigned long count, void *time, void *signals)'),
  fcntl: libc.func('int fcntl(int fd, int command, int value)'),
};

/** Memory of this many bytes is a mapping of its own, which goes back to the system as soon as it is freed. */
const MAPPED_BYTES = 256 * 1024;
/** `M_MMAP_THRESHOLD`, of mallopt(3). */
const MMAP_THRESHOLD = -3;
// Left to itself the C library raises that bound with each such mapping, and keeps what large bodies took for good.
libc.func('int mallopt(int parameter, int value)')(MMAP_THRESHOLD, MAPPED_BYTES);

/** POLLIN, of poll(2). */
const READABLE = 1;
/** A pollfd and a timespec. */
const polled = new Int32Array(2);
const wait_time = new BigInt64Array(2);
/** EAGAIN, of errno(3). */
const AGAIN = 11;
const SET_FLAGS = 2;
const DUPLICATE = 1030;
const SET_PIPE_SIZE = 1031;
const CLOSE_ON_EXEC = 1;
/** `O_CLOEXEC`, of open(2). */
const CLOSED_ON_EXEC = 0o2000000;

/** Makes a structure known to the declarations of calls, by its name; its members are in their order. */
export function defineStructure(name: string, members: Record<string, string>): void {
  koffi.struct(name, members);
}

/** A system call that failed. */
export class SystemError extends Error {
  /** Such as `EPERM`. */
  readonly code: string;

  constructor(name: string, errno: number) {
    const code = getSystemErrorName(-errno);
    super(`${name}: ${code}`);
    this.code = code;
  }
}

/** The number of the error of the last call that failed. */
export function lastError(): number {
  return koffi.errno();
}

/** The result of a call that is negative where it failed. Throws SystemError then. */
export function checked(name: string, result: number): number {
  if (result < 0) throw new SystemError(name, lastError());
  return result;
}

/** Makes a named pipe that only its owner can open. Throws SystemError. */
export function makeFifo(path: string): void {
  checked('mkfifo', call.mkfifo(path, 0o600));
}

/** Makes a pipe that no started program has, and gives its ends; `flags` as of open(2). Throws SystemError. */
export function makePipe(flags = 0): { reader: number; writer: number } {
  const ends = new Int32Array(2);
  checked('pipe2', call.pipe(ends, flags | CLOSED_ON_EXEC));
  return { reader: ends[0] as number, writer: ends[1] as number };
}

/**
 * Reads what there is within `wait_us` (less than a second), in place: null if there is nothing, 0 at the end. For
 * descriptors that do not wait. Throws SystemError.
 */
export function readSoon(fd: number, buffer: Buffer, wait_us: number): number | null {
  polled[0] = fd;
  polled[1] = READABLE;
  wait_time[1] = BigInt(wait_us) * 1_000n;
  if (call.poll(polled, 1, wait_time, null) <= 0) return null;
  const length = call.read(fd, buffer, buffer.length);
  return length < 0 && lastError() === AGAIN ? null : checked('read', length);
}

/** Keeps a descriptor from programs that are started from now on. Throws SystemError. */
export function closeOnExec(fd: number): void {
  checked('fcntl', call.fcntl(fd, SET_FLAGS, CLOSE_ON_EXEC));
}

/** Gives another descriptor of the same open file, which no started program has. Throws SystemError. */
export function duplicate(fd: number): number {
  return checked('fcntl', call.fcntl(fd, DUPLICATE, 0));
}

/** Lets a pipe hold so many bytes, if the system does: an account may have only so much in all of its pipes. */
export function widenPipe(fd: number, bytes: number): void {
  call.fcntl(fd, SET_PIPE_SIZE, bytes);
}

/** Gives all memory that is free in the C library's heaps back to the system. */
export function trimMemory(): void {
  call.trim(0);
}

/** Ends this program without waiting for its threads, and without anything else that is done at its end. */
export function exitAtOnce(status: number): void {
  call.exit(status);
}
