import { close as closeCallback, constants, fstat, open as openCallback, readSync } from 'node:fs';
import { Socket } from 'node:net';
import { promisify } from 'node:util';
import { OUTPUT_CHUNK_BYTES } from '../../contract/defaults.ts';
import { copyOf } from './buffer-pool.ts';
import type { OutputLog } from './output-log.ts';

/** With a bare number, since the socket is what closes it. */
const openFile = promisify(openCallback);
const closeFile = promisify(closeCallback);
const statFile = promisify(fstat);
/** Nothing by this name, or something that the daemon does not make. */
const NO_PIPE = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO']);

/** What one drain takes at most: more than a pipe holds, so that a flood by a survivor does not keep it going. */
const DRAIN_MAX_BYTES = 1024 * 1024;

/** What is read is copied at once, so that all readers share it. */
const read_buffer = Buffer.allocUnsafeSlow(OUTPUT_CHUNK_BYTES);

/**
 * Carries what a process writes into a named pipe over to its output log.
 *
 * The process holds its end open for reading and writing. So a daemon that is killed breaks no pipe: the
 * process goes on, waits when the pipe is full, and the next daemon opens the same pipe by its path and reads on.
 * The end of the file comes when the last process that holds the pipe has ended.
 *
 * A file that the process writes itself would lose nothing at all, but it could be kept within its bounds only by
 * stopping the process. What can be lost here, and only when the daemon is killed: what it had read and not yet
 * written, and what is in the pipe when its last holder ends before the next daemon opens it.
 */
export class PipeReader {
  readonly #log: OutputLog;
  readonly #onOutput: (data: Buffer) => void;
  readonly #socket: Socket;
  readonly #fd: number;
  readonly #closed = Promise.withResolvers<void>();

  private constructor(fd: number, log: OutputLog, onOutput: (data: Buffer) => void) {
    this.#fd = fd;
    this.#log = log;
    this.#onOutput = onOutput;
    const onread = {
      buffer: read_buffer,
      callback: (length: number, buffer: Uint8Array) => this.#accept(buffer.subarray(0, length)),
    };
    this.#socket = new Socket({ fd, readable: true, writable: false, onread });
    this.#socket.on('error', () => {}); // 'close' follows
    this.#socket.once('close', () => this.#closed.resolve());
  }

  /** Opens the pipe at `path`; `onOutput` gets every piece before it is logged. Throws the system's error. */
  static async open(path: string, log: OutputLog, onOutput: (data: Buffer) => void): Promise<PipeReader> {
    return new PipeReader(await openFile(path, constants.O_RDONLY | constants.O_NONBLOCK), log, onOutput);
  }

  /** The same for a name that an earlier daemon left; null where there is no pipe by it. */
  static async reopen(
    path: string,
    log: OutputLog,
    onOutput: (data: Buffer) => void,
  ): Promise<PipeReader | null> {
    const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
    const fd = await openFile(path, flags).catch((error: NodeJS.ErrnoException) => {
      if (NO_PIPE.has(error.code ?? '')) return null;
      throw error;
    });
    if (fd === null) return null;
    if ((await statFile(fd)).isFIFO()) return new PipeReader(fd, log, onOutput);
    await closeFile(fd);
    return null;
  }

  /** Resolves when nobody holds the pipe any more and all of it is in the log. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** Takes what the pipe holds now into the log, without waiting for more. */
  drain(): void {
    // The number of a destroyed socket may be another file's by now.
    for (let taken = 0; !this.#socket.destroyed && taken < DRAIN_MAX_BYTES; ) {
      const length = readAvailable(this.#fd, read_buffer);
      if (length === 0) return;
      this.#accept(read_buffer.subarray(0, length));
      taken += length;
    }
  }

  close(): void {
    this.#socket.destroy();
  }

  /** Tells the socket whether to read on. */
  #accept(bytes: Uint8Array): boolean {
    const data = copyOf(bytes);
    this.#onOutput(data);
    this.#log.append(data);
    if (!this.#log.is_full) return true;
    void this.#resumeWhenWritten();
    return false;
  }

  async #resumeWhenWritten(): Promise<void> {
    while (this.#log.is_full) await this.#log.changes.after(this.#log.changes.version);
    if (!this.#socket.destroyed) this.#socket.resume();
  }
}

/** Bytes that can be read at once; 0 where there are none for now or for ever. */
function readAvailable(fd: number, buffer: Buffer): number {
  try {
    return readSync(fd, buffer);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0;
    throw error;
  }
}
