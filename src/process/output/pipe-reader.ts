import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { Socket } from 'node:net';
import { loadLibc } from '../../base/linux/native.ts';
import { turns } from '../../base/loop-turns.ts';
import { OUTPUT_CHUNK_BYTES } from '../../contract/defaults.ts';
import type { OutputLog } from './output-log.ts';

/** There is nothing by this name, or something that the daemon never creates. */
const NO_PIPE = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO']);

/** The most that one drain reads: more than a pipe holds, but a descendant that floods the pipe cannot prolong it. */
const DRAIN_MAX_BYTES = 1024 * 1024;

/** What a pipe may hold whose process writes more than one read takes: woken up less often, both sides get more done. */
const WIDE_PIPE_BYTES = 512 * 1024;

/** Less is copied to memory of its own: it may be kept for long, and must not hold more memory than that. */
const LITTLE_BYTES = 8 * 1024;

/** Shared by all readers, since what is read is copied at once. */
const read_buffer = Buffer.allocUnsafeSlow(OUTPUT_CHUNK_BYTES);

/**
 * Copies what a process writes into a named pipe to its output log.
 *
 * The process holds its end open for reading and writing, so a daemon that is killed breaks no pipe: the process
 * continues, waits when the pipe is full, and the next daemon opens the same pipe by its path. The end of the file
 * comes when the last process that holds the pipe has ended.
 *
 * A file that the process writes itself would lose nothing, but its size could be limited only by stopping the
 * process. Here output can be lost only if the daemon is killed: what it had read and not yet written, and what is in
 * the pipe if its last holder ends before the next daemon opens it.
 */
export class PipeReader {
  readonly #log: OutputLog;
  readonly #onOutput: (data: Buffer) => void;
  readonly #socket: Socket;
  readonly #fd: number;
  #is_wide = false;
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
  static open(path: string, log: OutputLog, onOutput: (data: Buffer) => void): PipeReader {
    return new PipeReader(openSync(path, constants.O_RDONLY | constants.O_NONBLOCK), log, onOutput);
  }

  /** Opens a pipe that an earlier daemon left; null if there is no pipe by this name. Throws the system's error. */
  static reopen(path: string, log: OutputLog, onOutput: (data: Buffer) => void): PipeReader | null {
    const fd = openLeft(path);
    if (fd === null) return null;
    if (fstatSync(fd).isFIFO()) return new PipeReader(fd, log, onOutput);
    closeSync(fd);
    return null;
  }

  /** Resolves when no process holds the pipe any more and all of it is in the log. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** Copies what the pipe holds now into the log, without waiting for more, and closes it at its end. */
  drain(): void {
    // The descriptor of a destroyed socket may have been reused.
    for (let taken = 0; !this.#socket.destroyed && taken < DRAIN_MAX_BYTES; ) {
      const length = readAvailable(this.#fd, read_buffer);
      if (length === null) return;
      if (length === 0) {
        this.close();
        return;
      }
      this.#append(this.#copyOf(read_buffer.subarray(0, length)));
      taken += length;
    }
    if (this.#socket.destroyed) this.#closed.resolve(); // 'close' follows only after other work
  }

  /** Stops reading. */
  close(): void {
    this.#socket.destroy();
    this.#closed.resolve();
  }

  /** Gives the socket whether to continue reading. */
  #accept(bytes: Uint8Array): boolean {
    this.#append(this.#copyOf(bytes));
    if (bytes.length < read_buffer.length && !this.#log.is_full) return true;
    void this.#readFlood().catch(() => this.close());
    return false;
  }

  /**
   * Reads a process that writes more than one read takes: one batch while the one before is written, each as much as there
   * is by then. To be woken for each piece would take longer than to read it.
   */
  async #readFlood(): Promise<void> {
    const log = this.#log;
    if (!this.#is_wide) await this.#widen();
    while (!this.#socket.destroyed) {
      await log.whenRoom();
      await turns.next(); // what has just been written goes to its followers first, and there is more to read afterwards
      if (this.#socket.destroyed || this.#readOn()) continue;
      if (!log.is_writing) break;
      await log.flush();
    }
    if (!this.#socket.destroyed) this.#socket.resume();
  }

  async #widen(): Promise<void> {
    this.#is_wide = true;
    const library = await loadLibc();
    if (!this.#socket.destroyed) library?.widenPipe(this.#fd, WIDE_PIPE_BYTES);
  }

  /** Reads what there is to where it stays. Gives whether there was any; the end is left to the socket. */
  #readOn(): boolean {
    const { memory } = this.#log;
    let has_read = false;
    while (!this.#log.is_full) {
      const room = memory.room();
      const length = readAvailable(this.#fd, room);
      if (!length) break;
      this.#append(memory.take(length));
      has_read = true;
      if (length < room.length) break;
    }
    return has_read;
  }

  #copyOf(bytes: Uint8Array): Buffer {
    return bytes.length < LITTLE_BYTES ? Buffer.from(bytes) : this.#log.memory.copyOf(bytes);
  }

  #append(data: Buffer): void {
    this.#onOutput(data);
    this.#log.append(data);
  }
}

function openLeft(path: string): number | null {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  } catch (error) {
    if (NO_PIPE.has((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
}

/** Reads what is available: null if nothing is yet, 0 at the end. */
function readAvailable(fd: number, buffer: Buffer): number | null {
  try {
    return readSync(fd, buffer);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return null;
    throw error;
  }
}
