import { closeSync, openSync } from 'node:fs';
import { checked, lastError, libc, SystemError } from '../../base/linux/libc.ts';

/** The system calls of the packet queues. Each throws a `SystemError` unless it says otherwise. */

const call = {
  socket: libc.func('int socket(int domain, int type, int protocol)'),
  bind: libc.func('int bind(int fd, const uint8_t *address, uint32_t length)'),
  setsockopt: libc.func('int setsockopt(int fd, int level, int name, const int *value, uint32_t length)'),
  setns: libc.func('int setns(int fd, int kind)'),
  recv: libc.func('long recv(int fd, _Out_ uint8_t *bytes, size_t length, int flags)'),
  send: libc.func('long send(int fd, const uint8_t *bytes, size_t length, int flags)'),
  poll: libc.func('int poll(_Inout_ uint8_t *waiting, unsigned long count, int timeout)'),
  eventfd: libc.func('int eventfd(unsigned int value, int flags)'),
};

const AF_NETLINK = 16;
const SOCK_RAW = 3;
const CLOSE_ON_EXEC = 0o2000000;
const NONBLOCKING = 0o4000;
const NETLINK_NETFILTER = 12;
const SOL_SOCKET = 1;
const SO_RCVBUFFORCE = 33;
const SOL_NETLINK = 270;
const NETLINK_NO_ENOBUFS = 5;
const CLONE_NEWNET = 0x40000000;
const MSG_DONTWAIT = 0x40;
const POLL_ENTRY_BYTES = 8;
/** Readable; errors and hang-ups are always reported. */
const POLLIN = 1;

const AGAIN = 11;
const INTERRUPTED = 4;
const INPUT_OUTPUT = 5;

/** Calls `run` with this thread in the network namespace at `path`, then returns to its own; `run` must not wait. */
export function inNamespace<Result>(path: string, run: () => Result): Result {
  const own = openSync('/proc/thread-self/ns/net', 'r');
  try {
    const other = openSync(path, 'r');
    try {
      checked('setns', call.setns(other, CLONE_NEWNET));
    } finally {
      closeSync(other);
    }
    try {
      return run();
    } finally {
      checked('setns', call.setns(own, CLONE_NEWNET));
    }
  } finally {
    closeSync(own);
  }
}

/** Opens a netlink socket to the packet filter of this thread's namespace, with a receive buffer of this many bytes. */
export function openFilterSocket(receive_bytes: number): number {
  const type = SOCK_RAW | CLOSE_ON_EXEC | NONBLOCKING;
  const fd = checked('socket', call.socket(AF_NETLINK, type, NETLINK_NETFILTER));
  try {
    const address = Buffer.alloc(12);
    address.writeUInt16LE(AF_NETLINK);
    checked('bind', call.bind(fd, address, address.length));
    checked('setsockopt', call.setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, [receive_bytes], 4));
    // Otherwise a full buffer would lose messages, and their packets would be held for ever.
    checked('setsockopt', call.setsockopt(fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, [1], 4));
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** Opens an eventfd that wakes a `Poll`: writing eight bytes adds to its counter, reading eight bytes resets it. */
export function openWakeUp(): number {
  return checked('eventfd', call.eventfd(0, CLOSE_ON_EXEC | NONBLOCKING));
}

/** Reads one message; null if there is none. */
export function receive(fd: number, into: Buffer): number | null {
  for (;;) {
    const length = call.recv(fd, into, into.length, MSG_DONTWAIT) as number;
    if (length >= 0) return length;
    const errno = lastError();
    if (errno === AGAIN) return null;
    if (errno !== INTERRUPTED) throw new SystemError('recv', errno);
  }
}

/** Sends the first `length` bytes as one message. */
export function send(fd: number, bytes: Buffer, length: number): void {
  for (;;) {
    if (call.send(fd, bytes, length, 0) >= 0) return;
    const errno = lastError();
    if (errno !== INTERRUPTED) throw new SystemError('send', errno);
  }
}

/** As `send`, for a request that the kernel works on for long: another thread waits for it. Rejects with SystemError. */
export async function sendAside(fd: number, bytes: Buffer): Promise<void> {
  const sent = await new Promise<number>((resolve, reject) => {
    call.send.async(fd, bytes, bytes.length, 0, (error: Error | null, length: number) => {
      if (error) reject(error);
      else resolve(length);
    });
  });
  // The number of the error stays with that thread.
  if (sent < 0) throw new SystemError('send', INPUT_OUTPUT);
}

/** A set of file descriptors to wait for. */
export class Poll {
  #entries = Buffer.alloc(0);
  #fds: readonly number[] = [];

  /** Replaces the set. */
  watch(fds: readonly number[]): void {
    this.#fds = [...fds];
    this.#entries = Buffer.alloc(Math.max(1, fds.length) * POLL_ENTRY_BYTES);
    for (const [i, fd] of fds.entries()) {
      this.#entries.writeInt32LE(fd, i * POLL_ENTRY_BYTES);
      this.#entries.writeInt16LE(POLLIN, i * POLL_ENTRY_BYTES + 4);
    }
  }

  /** Blocks this thread for at most `timeout_ms`; returns the readable file descriptors. */
  wait(timeout_ms: number): number[] {
    const ready = call.poll(this.#entries, this.#fds.length, timeout_ms) as number;
    if (ready < 0) {
      const errno = lastError();
      if (errno === INTERRUPTED) return [];
      throw new SystemError('poll', errno);
    }
    if (ready === 0) return [];
    return this.#fds.filter((_, i) => this.#entries.readInt16LE(i * POLL_ENTRY_BYTES + 6) !== 0);
  }
}
