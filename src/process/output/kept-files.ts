import {
  closeSync,
  constants,
  open as openCallback,
  openSync,
  writev as writevCallback,
  writevSync,
} from 'node:fs';
import { type FileHandle, lstat, open, readdir, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { OUTPUT_KEEP_BYTES, OUTPUT_SEGMENT_BYTES } from '../../contract/defaults.ts';
import type { OutputStream } from '../../contract/words.ts';

/** A read of kept output: bytes from the requested offset, or `gone`, the next offset that is kept. */
export type OutputRead = { data: Buffer } | { gone: number };

/** One file of kept output. */
interface Segment {
  /** Offset of its first byte in the stream. */
  base: number;
  /** Bytes. */
  size: number;
  path: string;
}

/** The most files of one stream. Gaps leave files that are not full; without gaps there are three. */
const SEGMENTS_MAX = 64;
/** The most pieces that the kernel takes in one write: IOV_MAX. */
const WRITEV_MAX = 1_024;
/** Only regular files are opened: links are not followed, and opening a pipe does not block. */
const ONLY_FILES = constants.O_NOFOLLOW | constants.O_NONBLOCK;
const READ = constants.O_RDONLY | ONLY_FILES;
/** Flags to open a file that output is written to. */
const WRITE_FLAGS = constants.O_WRONLY | constants.O_CREAT | ONLY_FILES;

const openFile = promisify(openCallback);
const writeFile = promisify(writevCallback);

/**
 * The files that keep what one stream of a process wrote, each of a fixed size.
 *
 * Output is written to `<stream>`. When that file is full, it is renamed to `<stream>.<offset of its first byte>`, and
 * the oldest file that is no longer required is removed: the last 8 MiB are always kept, and never more than 16 MiB.
 * `<stream>` begins at the largest end offset of the renamed files, so names and sizes alone are enough to recover
 * after the daemon was killed. Bytes that the disk refused become a gap, never wrong bytes; an empty renamed file
 * marks the end of a gap. After one, the next write begins a new file.
 */
export class KeptFiles {
  readonly #folder: string;
  readonly #stream: OutputStream;
  /** The offset that everything before may be removed, as far as lossless followers are concerned. */
  readonly #takenBefore: () => number;
  /** Oldest first; output is written to the last. */
  readonly #segments: Segment[];
  #file: number | null = null;
  /** Resolves once no file is being renamed. */
  #renamed: Promise<unknown> = Promise.resolve();
  /** Resolves once no file is being removed. */
  #removed: Promise<unknown> = Promise.resolve();
  /** The offset after bytes that were given up; null if no bytes are missing at the end. */
  #gap_end: number | null = null;
  #dropped_bytes = 0;

  private constructor(folder: string, stream: OutputStream, segments: Segment[], takenBefore: () => number) {
    this.#folder = folder;
    this.#stream = stream;
    this.#segments = segments;
    this.#takenBefore = takenBefore;
  }

  /** Those of a new process: none yet. */
  static create(folder: string, stream: OutputStream, takenBefore: () => number): KeptFiles {
    return new KeptFiles(folder, stream, [{ base: 0, size: 0, path: join(folder, stream) }], takenBefore);
  }

  /** Those that an earlier daemon left in `folder`. Throws the system's error if they cannot be read. */
  static async load(folder: string, stream: OutputStream, takenBefore: () => number): Promise<KeptFiles> {
    return new KeptFiles(folder, stream, await findSegments(folder, stream), takenBefore);
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

  /** Appends these bytes, or gives up what the disk refuses: it must not stop the process. Never rejects. */
  async write(batch: readonly Buffer[], batch_bytes: number): Promise<void> {
    let written = 0;
    try {
      if (this.#gap_end !== null) await this.#rotate();
      while (written < batch_bytes) {
        if (this.#written.size >= OUTPUT_SEGMENT_BYTES) await this.#rotate();
        const parts = sliceParts(batch, written, OUTPUT_SEGMENT_BYTES - this.#written.size);
        const length = await this.#writeParts(parts);
        this.#written.size += length;
        written += length;
      }
    } catch {
      this.#dropped_bytes += batch_bytes - written;
      this.#gap_end = this.end + batch_bytes - written;
    }
    await this.#removed;
  }

  /**
   * Up to `max_bytes` from `offset`, in `target` if that is given; empty at the end. For an offset that is not kept,
   * `gone` is the next one that is. A file that is renamed or removed during the read is looked up again.
   */
  async read(offset: number, max_bytes: number, target?: Buffer): Promise<OutputRead> {
    for (;;) {
      if (offset >= this.end) return { data: Buffer.alloc(0) };
      const segment = this.#segments.find(({ base, size }) => offset < base + size);
      if (!segment) return { gone: this.end };
      if (offset < segment.base) return { gone: segment.base };
      const { path } = segment;
      const length = Math.min(max_bytes, segment.base + segment.size - offset);
      const data = await readAt(path, offset - segment.base, target?.subarray(0, length) ?? length);
      if (!data) await this.#renamed; // until then it may not be known by its new name
      const is_same = this.#segments.includes(segment) && segment.path === path;
      if (data && is_same) return { data };
      if (is_same) return { gone: segment.base + segment.size };
    }
  }

  /** Closes the file that is written to. It is opened again if more is written. */
  close(): void {
    const file = this.#file;
    this.#file = null;
    if (file !== null) closeSync(file);
  }

  get #written(): Segment {
    return this.#segments[this.#segments.length - 1] as Segment;
  }

  async #writeParts(parts: readonly Buffer[]): Promise<number> {
    const { path, size } = this.#written;
    if (this.#file !== null) return (await writeFile(this.#file, parts, size)).bytesWritten;
    this.#file = await openFile(path, WRITE_FLAGS, 0o600);
    // In place: the disk has just answered, and many processes write no more than this.
    return writevSync(this.#file, parts, size);
  }

  /**
   * Renames the present file and begins a new one; what is no longer required is removed while that is written to. Every
   * step can be repeated after a failure.
   */
  async #rotate(): Promise<void> {
    const path = join(this.#folder, this.#stream);
    const full = this.#written;
    const base = this.end;
    this.close();
    if (full.size > 0 && full.path === path) {
      const renamed = renameSegment(full, `${path}.${full.base}`);
      this.#renamed = renamed.catch(() => {});
      await renamed;
      // In place: the disk has just answered.
      if (this.#gap_end === null) this.#file = openSync(path, WRITE_FLAGS, 0o600);
    }
    if (this.#gap_end !== null)
      closeSync(await openFile(`${path}.${base}`, WRITE_FLAGS | constants.O_TRUNC, 0o600));
    if (full.size === 0) this.#segments.pop();
    this.#segments.push({ base, size: 0, path });
    this.#gap_end = null;
    this.#removed = this.#removeOld();
  }

  async #removeOld(): Promise<void> {
    for (;;) {
      const oldest = this.#segments[0] as Segment;
      const is_taken = oldest.base + oldest.size <= this.#takenBefore();
      const is_spare = is_taken && this.size_bytes - oldest.size >= OUTPUT_KEEP_BYTES;
      if (this.#segments.length === 1 || !(is_spare || this.#segments.length > SEGMENTS_MAX)) return;
      this.#segments.shift();
      await unlink(oldest.path).catch(() => {});
    }
  }
}

async function renameSegment(segment: Segment, path: string): Promise<void> {
  await rename(segment.path, path);
  segment.path = path;
}

/** The bytes of `batch` from `from` on, at most `max_bytes` and as many pieces as one write takes, without copying. */
export function sliceParts(batch: readonly Buffer[], from: number, max_bytes: number): Buffer[] {
  const parts: Buffer[] = [];
  let start = 0;
  for (const data of batch) {
    const part = data.subarray(Math.max(0, from - start), Math.max(0, from + max_bytes - start));
    if (part.length > 0) parts.push(part);
    start += data.length;
  }
  return parts.slice(0, WRITEV_MAX);
}

/**
 * Bytes of a file at `position`: at most `into`, or as many as that buffer takes; null if there are none or the file
 * cannot be read.
 */
export async function readAt(path: string, position: number, into: number | Buffer): Promise<Buffer | null> {
  const target = typeof into === 'number' ? Buffer.allocUnsafe(into) : into;
  let file: FileHandle | undefined;
  try {
    file = await open(path, READ);
    const { bytesRead } = await file.read(target, 0, target.length, position);
    return bytesRead > 0 ? target.subarray(0, bytesRead) : null;
  } catch {
    return null;
  } finally {
    await file?.close();
  }
}

/** The files of a stream that are in `folder`, oldest first. Throws the system's error if they cannot be read. */
export async function findSegments(folder: string, stream: OutputStream): Promise<Segment[]> {
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

/** The size of a file in bytes; null if there is no file of this name. Throws other errors of the system. */
async function sizeOf(path: string): Promise<number | null> {
  try {
    const stats = await lstat(path);
    return stats.isFile() ? stats.size : null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
