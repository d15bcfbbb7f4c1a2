import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { OutputStream } from '../../contract/processes.ts';

/** One file of kept output. */
export interface Segment {
  /** Offset of its first byte in the stream. */
  base: number;
  /** Bytes. */
  size: number;
  path: string;
}

/** The most pieces that the kernel takes in one write: IOV_MAX. */
const WRITEV_MAX = 1_024;
/** Only regular files are opened: links are not followed, and opening a pipe does not block. */
const ONLY_FILES = constants.O_NOFOLLOW | constants.O_NONBLOCK;
const READ = constants.O_RDONLY | ONLY_FILES;
/** Flags to open a file that output is written to. */
export const WRITE_FLAGS = constants.O_WRONLY | constants.O_CREAT | ONLY_FILES;

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
 * Bytes of a file at `position`, at most so many, or as many as the given buffer takes; null if there are none or the
 * file cannot be read.
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
