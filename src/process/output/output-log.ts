import { constants } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  OUTPUT_CHUNK_BYTES,
  OUTPUT_KEEP_BYTES,
  OUTPUT_PENDING_BYTES,
  OUTPUT_PREVIEW_BYTES,
  OUTPUT_SEGMENT_BYTES,
} from '../../contract/defaults.ts';
import type { OutputStream } from '../../contract/processes.ts';
import { ChangeSignal } from '../change-signal.ts';
import { release } from './buffer-pool.ts';
import { OutputHolds } from './output-holds.ts';
import { RecentOutput } from './recent-output.ts';
import { findSegments, readAt, type Segment, sliceParts, WRITE_FLAGS } from './segments.ts';

/** A read of kept output: bytes from the requested offset, or `gone`, the next offset that is kept. */
export type OutputRead = { data: Buffer } | { gone: number };

/** The most files of one stream. Gaps leave files that are not full; without gaps there are three. */
const SEGMENTS_MAX = 64;

/**
 * What one stream of a process wrote, kept on disk in files of a fixed size.
 *
 * Output is written to `<stream>`. When that file is full, it is renamed to `<stream>.<offset of its first byte>`, and
 * the oldest file that is no longer required is removed: the last 8 MiB are always kept, and never more than 12 MiB.
 * `<stream>` begins at the largest end offset of the renamed files, so names and sizes alone are enough to recover
 * after the daemon was killed. Bytes that the disk refused become a gap, never wrong bytes; an empty renamed file
 * marks the end of a gap.
 *
 * | State   | `#writing` | `#gap_end` | Entered                      | Left                                          |
 * |---------|------------|------------|------------------------------|-----------------------------------------------|
 * | idle    | null       | null       | everything pending is written | `append`: writing                            |
 * | writing | set        | null       | `append`                     | nothing pending: idle; the disk refuses: gap  |
 * | gap     | set or null | set       | a write failed               | `append` and a successful rotation: writing   |
 */
export class OutputLog {
  readonly stream: OutputStream;
  /** Notified when there is more to read. */
  readonly changes: ChangeSignal;
  /** What lossless followers hold. */
  readonly holds: OutputHolds;
  /** Notified when less output waits for the disk or for a lossless follower. */
  readonly #room = new ChangeSignal();
  readonly #recent = new RecentOutput();
  readonly #folder: string;
  /** Oldest first; output is written to the last. */
  #segments: Segment[];
  #file: FileHandle | null = null;
  #pending: Buffer[] = [];
  #pending_bytes = 0;
  /** The offset after bytes that were given up; null if no bytes are missing at the end. */
  #gap_end: number | null = null;
  #writing: Promise<void> | null = null;
  #tail: Buffer = Buffer.alloc(0);
  #dropped_bytes = 0;
  /** The offset after the last byte accepted, also of those that are not yet written. */
  #accepted: number;

  private constructor(folder: string, stream: OutputStream, changes: ChangeSignal, segments: Segment[]) {
    this.changes = changes;
    this.#folder = folder;
    this.stream = stream;
    this.#segments = segments;
    this.#accepted = this.end;
    this.holds = new OutputHolds(this.#room);
  }

  /** The empty log of a new process. */
  static create(folder: string, stream: OutputStream, changes: ChangeSignal): OutputLog {
    return new OutputLog(folder, stream, changes, [{ base: 0, size: 0, path: join(folder, stream) }]);
  }

  /** The log that an earlier daemon left in `folder`. Throws the system's error if that cannot be read. */
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

  /** Whether too much output waits for the disk or for a lossless follower: the process should not be read for now. */
  get is_full(): boolean {
    return this.#pending_bytes >= OUTPUT_PENDING_BYTES || this.holds.isFull(this.#accepted);
  }

  /** The last bytes that the process wrote, also those that are not yet on disk. */
  get tail(): Buffer {
    return this.#tail;
  }

  /** Takes over `data`, which the caller must not change afterwards. It can be read once it is written. */
  append(data: Buffer): void {
    this.#pending.push(data);
    this.#pending_bytes += data.length;
    this.#accepted += data.length;
    const tail = data.length >= OUTPUT_PREVIEW_BYTES ? data : Buffer.concat([this.#tail, data]);
    // A copy: a view would hold the whole of what it was cut from in memory.
    this.#tail = Buffer.from(tail.subarray(Math.max(0, tail.length - OUTPUT_PREVIEW_BYTES)));
    this.#writing ??= this.#writePending();
  }

  /** Resolves when the log is no longer full. */
  async whenRoom(): Promise<void> {
    while (this.is_full) await this.#room.after(this.#room.version);
  }

  /** Keeps the newest output in memory until the returned function is called. */
  follow(): () => void {
    return this.#recent.follow(this.#accepted - this.#pending_bytes);
  }

  /** Resolves when everything accepted so far is written or given up. */
  async flush(): Promise<void> {
    while (this.#writing !== null) await this.#writing;
  }

  /** Closes the file, once everything is written or given up. It is opened again if more output arrives. */
  async close(): Promise<void> {
    await this.flush();
    const file = this.#file;
    this.#file = null;
    await file?.close();
  }

  /** What is in memory from `offset` on, copied to `target`; null if it is not in memory, or at the end. */
  readRecent(offset: number, target: Buffer): Buffer | null {
    const length = this.#recent.read(offset, target);
    return length > 0 ? target.subarray(0, length) : null;
  }

  /**
   * Up to `max_bytes` from `offset`, in `target` if that is given; empty at the end. For an offset that is not kept,
   * `gone` is the next one that is. A file that is renamed or removed during the read is looked up again.
   */
  async read(offset: number, max_bytes = OUTPUT_CHUNK_BYTES, target?: Buffer): Promise<OutputRead> {
    for (;;) {
      if (offset >= this.end) return { data: Buffer.alloc(0) };
      const segment = this.#segments.find(({ base, size }) => offset < base + size);
      if (!segment) return { gone: this.end };
      if (offset < segment.base) return { gone: segment.base };
      const { path } = segment;
      const length = Math.min(max_bytes, segment.base + segment.size - offset);
      const data = await readAt(path, offset - segment.base, target?.subarray(0, length) ?? length);
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
      for (const data of batch) {
        this.#recent.add(data);
        release(data);
      }
      this.#pending_bytes -= batch_bytes;
      this.changes.notify();
      this.#room.notify();
    }
    this.#writing = null;
  }

  async #write(batch: readonly Buffer[], batch_bytes: number): Promise<void> {
    let written = 0;
    try {
      if (this.#gap_end !== null) await this.#rotate();
      while (written < batch_bytes) {
        if (this.#written.size >= OUTPUT_SEGMENT_BYTES) await this.#rotate();
        written += await this.#writeParts(
          sliceParts(batch, written, OUTPUT_SEGMENT_BYTES - this.#written.size),
        );
      }
    } catch {
      // A disk in trouble must not stop the process: the bytes are given up and reported as a gap.
      this.#dropped_bytes += batch_bytes - written;
      this.#gap_end = this.end + batch_bytes - written;
    }
  }

  async #writeParts(parts: readonly Buffer[]): Promise<number> {
    const segment = this.#written;
    this.#file ??= await open(segment.path, WRITE_FLAGS, 0o600);
    const { bytesWritten } = await this.#file.writev(parts, segment.size);
    segment.size += bytesWritten;
    return bytesWritten;
  }

  /** Renames the present file and begins a new one. Every step can be repeated after a failure. */
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
      await (await open(`${path}.${base}`, WRITE_FLAGS | constants.O_TRUNC, 0o600)).close();
    if (full.size === 0) this.#segments.pop();
    this.#segments.push({ base, size: 0, path });
    this.#gap_end = null;
    await this.#removeOld();
  }

  async #removeOld(): Promise<void> {
    for (;;) {
      const oldest = this.#segments[0] as Segment;
      const is_taken = oldest.base + oldest.size <= this.holds.slowest;
      const is_spare = is_taken && this.size_bytes - oldest.size >= OUTPUT_KEEP_BYTES;
      if (this.#segments.length === 1 || !(is_spare || this.#segments.length > SEGMENTS_MAX)) return;
      this.#segments.shift();
      await rm(oldest.path, { force: true }).catch(() => {});
    }
  }
}
