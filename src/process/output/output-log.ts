import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  OUTPUT_CHUNK_BYTES,
  OUTPUT_KEEP_BYTES,
  OUTPUT_PENDING_BYTES,
  OUTPUT_PREVIEW_BYTES,
  OUTPUT_SEGMENT_BYTES,
} from '../../contract/defaults.ts';
import type { OutputStream } from '../../contract/processes.ts';
import type { ChangeSignal } from '../change-signal.ts';
import { release } from './buffer-pool.ts';

/**
 * What one stream of a process wrote, kept on disk in files of a fixed size.
 *
 * `<stream>` is written to; when it is full it is renamed to `<stream>.<offset of its first byte>` and the oldest
 * file beyond what must be kept is removed. So the last 8 MiB are always there and never more than 12 MiB.
 * The offset at which `<stream>` begins is the largest end among the renamed ones: what a daemon that was killed
 * left is read back from the names and sizes alone. Bytes that the disk refused are a gap, never wrong bytes;
 * an empty renamed file tags where it ends.
 */

interface Segment {
  /** Offset of its first byte in the stream. */
  base: number;
  size: number;
  path: string;
}

/** A read of kept output: bytes from the offset asked for, or where the kept output goes on instead. */
export type OutputRead = { data: Buffer } | { gone: number };

/** The kernel takes no more pieces in one write: IOV_MAX. */
const WRITEV_MAX = 1_024;
/** Gaps make files that are not full; without them there are three. */
const SEGMENTS_MAX = 64;

/** Only files are opened: a link is not followed, and a pipe has nobody wait. */
const ONLY_FILES = constants.O_NOFOLLOW | constants.O_NONBLOCK;
const READ = constants.O_RDONLY | ONLY_FILES;
const WRITE = constants.O_WRONLY | constants.O_CREAT | ONLY_FILES;

export class OutputLog {
  readonly stream: OutputStream;
  /** Told when there is more to read, and when something no longer waits for the disk. */
  readonly changes: ChangeSignal;
  readonly #folder: string;
  /** Oldest first; the last is the one that is written. */
  #segments: Segment[];
  #file: FileHandle | null = null;
  #pending: Buffer[] = [];
  #pending_bytes = 0;
  /** Where output goes on after bytes that were given up; null while nothing is missing at the end. */
  #gap_end: number | null = null;
  #writing: Promise<void> | null = null;
  #tail: Buffer = Buffer.alloc(0);
  #dropped_bytes = 0;

  private constructor(folder: string, stream: OutputStream, changes: ChangeSignal, segments: Segment[]) {
    this.changes = changes;
    this.#folder = folder;
    this.stream = stream;
    this.#segments = segments;
  }

  /** The log of a new process: there is nothing of it yet. */
  static create(folder: string, stream: OutputStream, changes: ChangeSignal): OutputLog {
    return new OutputLog(folder, stream, changes, [{ base: 0, size: 0, path: join(folder, stream) }]);
  }

  /** The log that is found in `folder`. */
  static async load(folder: string, stream: OutputStream, changes: ChangeSignal): Promise<OutputLog> {
    const log = new OutputLog(folder, stream, changes, await findSegments(folder, stream));
    const read = await log.read(Math.max(log.first, log.end - OUTPUT_PREVIEW_BYTES), OUTPUT_PREVIEW_BYTES);
    if ('data' in read) log.#tail = read.data;
    return log;
  }

  /** Offset of the oldest kept byte. */
  get first(): number {
    return this.#segments.find(({ size }) => size > 0)?.base ?? this.end;
  }

  /** Offset after the newest byte that can be read. */
  get end(): number {
    const { base, size } = this.#written;
    return this.#gap_end ?? base + size;
  }

  /** Bytes on disk. */
  get size_bytes(): number {
    return this.#segments.reduce((sum, { size }) => sum + size, 0);
  }

  /** Bytes that the disk refused since the daemon started. */
  get dropped_bytes(): number {
    return this.#dropped_bytes;
  }

  /** Whether so much waits for the disk that the process should not be read for now. */
  get is_full(): boolean {
    return this.#pending_bytes >= OUTPUT_PENDING_BYTES;
  }

  /** The last bytes that the process wrote, also those that are not yet on disk. */
  get tail(): Buffer {
    return this.#tail;
  }

  /** Takes over bytes, which the caller must not change afterwards. They can be read a little later. */
  append(data: Buffer): void {
    this.#pending.push(data);
    this.#pending_bytes += data.length;
    const tail = data.length >= OUTPUT_PREVIEW_BYTES ? data : Buffer.concat([this.#tail, data]);
    // A copy: a view would hold the whole of what it was cut from in memory.
    this.#tail = Buffer.from(tail.subarray(Math.max(0, tail.length - OUTPUT_PREVIEW_BYTES)));
    this.#writing ??= this.#writePending();
  }

  /** Resolves when everything accepted so far is written or given up. */
  async flush(): Promise<void> {
    while (this.#writing !== null) await this.#writing;
  }

  /** Closes the file that is written; it is opened again when there is more. */
  async close(): Promise<void> {
    await this.flush();
    const file = this.#file;
    this.#file = null;
    await file?.close();
  }

  /**
   * Up to `max_bytes` from `offset`; empty at the end. An offset that is not kept gives where the kept output
   * goes on. A file that vanishes while it is read is looked for again.
   */
  async read(offset: number, max_bytes = OUTPUT_CHUNK_BYTES): Promise<OutputRead> {
    for (;;) {
      if (offset >= this.end) return { data: Buffer.alloc(0) };
      const segment = this.#segments.find(({ base, size }) => offset < base + size);
      if (!segment) return { gone: this.end };
      if (offset < segment.base) return { gone: segment.base };
      const { path } = segment;
      const length = Math.min(max_bytes, segment.base + segment.size - offset);
      const data = await readAt(path, offset - segment.base, length);
      const is_same = this.#segments.includes(segment) && segment.path === path;
      if (data && is_same) return { data };
      if (is_same) return { gone: segment.base + segment.size };
    }
  }

  get #written(): Segment {
    return this.#segments[this.#segments.length - 1] as Segment;
  }

  async #writePending(): Promise<void> {
    while (this.#pending.length > 0) {
      const batch = this.#pending;
      const batch_bytes = this.#pending_bytes;
      this.#pending = [];
      await this.#write(batch, batch_bytes);
      for (const data of batch) release(data);
      this.#pending_bytes -= batch_bytes;
      this.changes.notify();
    }
    this.#writing = null;
  }

  async #write(batch: readonly Buffer[], batch_bytes: number): Promise<void> {
    let written = 0;
    try {
      if (this.#gap_end !== null) await this.#rotate();
      while (written < batch_bytes) {
        if (this.#written.size >= OUTPUT_SEGMENT_BYTES) await this.#rotate();
        written += await this.#writeParts(slice(batch, written, OUTPUT_SEGMENT_BYTES - this.#written.size));
      }
    } catch {
      // The disk is in trouble. The process must not stand still for it: the bytes are given up, told as a gap.
      this.#dropped_bytes += batch_bytes - written;
      this.#gap_end = this.end + batch_bytes - written;
    }
  }

  async #writeParts(parts: readonly Buffer[]): Promise<number> {
    const segment = this.#written;
    this.#file ??= await open(segment.path, WRITE, 0o600);
    const { bytesWritten } = await this.#file.writev(parts, segment.size);
    segment.size += bytesWritten;
    return bytesWritten;
  }

  /** Sets the present file aside and goes on with a new one. Every step can be repeated after a failure. */
  async #rotate(): Promise<void> {
    const path = join(this.#folder, this.stream);
    const full = this.#written;
    const base = this.end;
    await this.#file?.close();
    this.#file = null;
    if (full.size > 0 && full.path === path) {
      await rename(path, `${path}.${full.base}`);
      full.path = `${path}.${full.base}`;
    }
    if (this.#gap_end !== null)
      await (await open(`${path}.${base}`, WRITE | constants.O_TRUNC, 0o600)).close();
    if (full.size === 0) this.#segments.pop();
    this.#segments.push({ base, size: 0, path });
    this.#gap_end = null;
    await this.#removeOld();
  }

  async #removeOld(): Promise<void> {
    for (;;) {
      const oldest = this.#segments[0] as Segment;
      const is_spare = this.size_bytes - oldest.size >= OUTPUT_KEEP_BYTES;
      if (this.#segments.length === 1 || !(is_spare || this.#segments.length > SEGMENTS_MAX)) return;
      this.#segments.shift();
      await rm(oldest.path, { force: true }).catch(() => {});
    }
  }
}

/** The bytes from `from` on, at most `max_bytes`, without copying them. */
function slice(batch: readonly Buffer[], from: number, max_bytes: number): Buffer[] {
  const parts: Buffer[] = [];
  let start = 0;
  for (const data of batch) {
    const part = data.subarray(Math.max(0, from - start), Math.max(0, from + max_bytes - start));
    if (part.length > 0) parts.push(part);
    start += data.length;
  }
  return parts.slice(0, WRITEV_MAX);
}

async function readAt(path: string, position: number, length: number): Promise<Buffer | null> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, READ);
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(length), 0, length, position);
    return bytesRead > 0 ? buffer.subarray(0, bytesRead) : null;
  } catch {
    return null;
  } finally {
    await file?.close();
  }
}

async function findSegments(folder: string, stream: OutputStream): Promise<Segment[]> {
  const prefix = `${stream}.`;
  const names = (await readdir(folder)).filter((name) => name.startsWith(prefix));
  const bases = names.map((name) => Number(name.slice(prefix.length))).filter(Number.isSafeInteger);
  const segments: Segment[] = [];
  for (const base of bases.sort((a, b) => a - b)) {
    const path = join(folder, `${stream}.${base}`);
    const size = await sizeOf(path);
    if (size !== null) segments.push({ base, size, path });
  }
  const base = segments.reduce((end, segment) => Math.max(end, segment.base + segment.size), 0);
  const path = join(folder, stream);
  return [...segments, { base, size: (await sizeOf(path)) ?? 0, path }];
}

/** The size of a file in bytes; null where there is no file of this name. Throws where that cannot be known. */
async function sizeOf(path: string): Promise<number | null> {
  try {
    const stats = await lstat(path);
    return stats.isFile() ? stats.size : null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
