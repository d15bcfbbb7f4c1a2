"""What a sandbox may do, without end: a process for each behaviour takes until it is refused, keeps what it has, and tries
again. Arguments: a file for the counts, a peer outside, names of behaviours.

Counts are three integers of 64 bits for each of them, in this order: taken, refused, started."""

import ctypes
import fcntl
import mmap
import os
import random
import resource
import select
import signal
import socket
import struct
import sys
import threading
import time
import urllib.error
import urllib.request

LIBC = ctypes.CDLL(None, use_errno=True)
COUNTS_PATH, PEER, *NAMES = sys.argv[1:]
PEER_PORT = 7000
MIB = 1024 * 1024
REST_S = 0.05
HOME = "/tmp/hostile"
IPC_PRIVATE, IPC_CREAT = 0, 0o1000


def attempts(take):
    """Keeps what each call gives."""
    kept = []
    while True:
        try:
            kept.append(take(len(kept)))
            yield True
        except (OSError, MemoryError, RuntimeError):
            yield False


def call(value):
    if value < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return value


def processes():
    def fork(_):
        pid = os.fork()
        if pid == 0:
            while True:
                signal.pause()
        return pid

    return attempts(fork)


def threads():
    threading.stack_size(64 * 1024)

    def start(_):
        thread = threading.Thread(target=threading.Event().wait, daemon=True)
        thread.start()
        return thread

    return attempts(start)


def open_files():
    """In as many processes as can be had, since each has a bound of its own."""
    descriptors_max = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    while True:
        taken = 0
        try:
            while True:
                os.open("/dev/null", os.O_RDONLY)
                taken += 1
                if taken % 64 == 0:
                    yield True
        except OSError:
            yield False
        try:
            if os.fork() != 0:
                while True:
                    signal.pause()
            os.closerange(3, descriptors_max)
        except OSError:
            yield False


def pipes():
    return attempts(lambda _: os.pipe())


def pipe_buffers():
    def fill(_):
        _, writer = os.pipe()
        fcntl.fcntl(writer, 1031, MIB)  # F_SETPIPE_SZ
        os.set_blocking(writer, False)
        return os.write(writer, bytes(MIB))

    return attempts(fill)


def terminals():
    return attempts(lambda _: os.openpty())


def inotify():
    def watch(count):
        descriptor = call(LIBC.inotify_init())
        for name in ("/", "/usr", "/etc", "/tmp", "/proc", "/dev"):
            call(LIBC.inotify_add_watch(descriptor, name.encode(), 0xFFF))
        return descriptor

    return attempts(watch)


def watches():
    descriptor = call(LIBC.inotify_init())
    folders = os.walk("/usr", followlinks=False)
    return attempts(lambda _: call(LIBC.inotify_add_watch(descriptor, next(folders, ("/",))[0].encode(), 0xFFF)))


def asynchronous():
    contexts = []

    def setup(_):
        contexts.append(ctypes.c_ulong(0))
        return call(LIBC.syscall(206 if os.uname().machine == "x86_64" else 0, 1024, ctypes.byref(contexts[-1])))

    return attempts(setup)


def keys():
    number = 248 if os.uname().machine == "x86_64" else 217
    return attempts(lambda count: call(LIBC.syscall(number, b"user", b"%d" % count, b"x" * 1000, 1000, -4)))


def sockets():
    kinds = [(socket.AF_UNIX, socket.SOCK_STREAM), (socket.AF_INET, socket.SOCK_STREAM), (socket.AF_INET6, socket.SOCK_DGRAM)]
    return attempts(lambda count: socket.socket(*kinds[count % len(kinds)]))


def socket_buffers():
    """What nobody reads: datagrams, and streams, on the loopback."""

    def fill(_):
        reader, writer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        reader.bind(("127.0.0.1", 0))
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 * MIB)
        for _ in range(400):
            writer.sendto(b"x", reader.getsockname())
        listener = socket.create_server(("127.0.0.1", 0))
        sender = socket.create_connection(listener.getsockname())
        sender.setblocking(False)
        while True:
            try:
                sender.send(bytes(MIB))
            except BlockingIOError:
                return reader, listener, sender

    return attempts(fill)


def polls():
    def poll(_):
        descriptor = select.epoll()
        for kept in range(3, 400):
            try:
                descriptor.register(os.dup(0), select.EPOLLIN)
            except PermissionError:
                pass
        return descriptor

    return attempts(poll)


def locks():
    descriptor = os.open(f"{HOME}/lock", os.O_RDWR | os.O_CREAT)
    return attempts(lambda count: fcntl.lockf(descriptor, fcntl.LOCK_EX, 1, 2 * count))


def shared_memory():
    return attempts(lambda _: call(LIBC.shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0o600)))


def semaphores():
    return attempts(lambda _: call(LIBC.semget(IPC_PRIVATE, 100, IPC_CREAT | 0o600)))


def queues():
    return attempts(lambda _: call(LIBC.msgget(IPC_PRIVATE, IPC_CREAT | 0o600)))


def signals():
    timer = ctypes.c_void_p()
    return attempts(lambda _: call(LIBC.timer_create(1, None, ctypes.byref(timer))))


def inodes():
    def create(count):
        folder = f"{HOME}/inodes/{count // 1000}"
        os.makedirs(folder, exist_ok=True)
        os.close(os.open(f"{folder}/{count}", os.O_CREAT | os.O_WRONLY))

    return attempts(create)


def disk():
    descriptor = os.open(f"{HOME}/filled", os.O_CREAT | os.O_WRONLY)
    piece = os.urandom(MIB)
    return attempts(lambda _: os.write(descriptor, piece))


def syncs():
    def sync(count):
        os.pwrite(descriptor, b"x" * 4096, 4096 * (count % 64))
        os.fsync(descriptor)

    descriptor = os.open(f"{HOME}/synced", os.O_CREAT | os.O_WRONLY)
    return attempts(sync)


def memory():
    def touch(_):
        piece = mmap.mmap(-1, MIB)
        for offset in range(0, MIB, 4096):
            piece[offset] = 1
        return piece

    return attempts(touch)


def cpu():
    while True:
        sum(range(100_000))
        yield True


def datagrams():
    """Each to a port of its own: as many flows."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setblocking(False)

    def send(count):
        sender.sendto(b"x", (PEER, 1 + count % 65_000))

    return attempts(send)


def connections():
    return attempts(lambda _: socket.create_connection((PEER, PEER_PORT), timeout=3))


def refused_connections():
    return attempts(lambda count: socket.create_connection((PEER, 1 + count % 6_000), timeout=0.2))


def streams():
    def give(_):
        stream = socket.create_connection((PEER, PEER_PORT), timeout=3)
        stream.sendall(b'{"job":"give"}\n')
        while stream.recv(MIB):
            pass

    return attempts(give)


def neighbours():
    """Addresses that it says are on its own link."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_DONTROUTE, 1)
    return attempts(lambda _: sender.sendto(b"x", (f"9.{random.randrange(250)}.{random.randrange(250)}.9", 9)))


def publishes():
    def publish(count):
        request = urllib.request.Request(
            f"{os.environ['SANDBOXD_URL']}/api/v1/webhook/publish",
            data=b'{"payload":{"text":"%s"}}' % (b"x" * (100 if count % 8 else 200_000)),
            headers={"content-type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=20).read()

    return attempts(publish)


def output():
    """Lines that its daemon keeps."""
    while True:
        os.write(1, b"x" * 8191 + b"\n")
        yield True


def run(name, counts, place):
    """In a process of its own. One that is refused rests, so that the others have the processor too."""
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000" if name in ("memory", "open_files") else "500")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    for is_taken in globals()[name]():
        offset = place + (0 if is_taken else 8)
        struct.pack_into("Q", counts, offset, struct.unpack_from("Q", counts, offset)[0] + 1)
        if not is_taken:
            time.sleep(REST_S)


def main():
    os.makedirs(HOME, exist_ok=True)
    with open(COUNTS_PATH, "w+b") as file:
        file.write(bytes(4096))
        file.flush()
        counts = mmap.mmap(file.fileno(), 4096)
    running = {}
    while True:
        for place, name in enumerate(NAMES):
            if name in running.values():
                continue
            offset = 24 * place
            try:
                pid = os.fork()
            except OSError:
                break
            if pid == 0:
                try:
                    run(name, counts, offset)
                finally:
                    os._exit(1)
            running[pid] = name
            struct.pack_into("Q", counts, offset + 16, struct.unpack_from("Q", counts, offset + 16)[0] + 1)
        try:
            pid = os.waitpid(-1, os.WNOHANG)[0]
            if pid:
                running.pop(pid, None)
        except ChildProcessError:
            pass
        time.sleep(REST_S)


main()
