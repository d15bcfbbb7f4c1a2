import {
  closeSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  ftruncateSync,
  futimesSync,
  openSync,
  readFileSync,
  type Stats,
  writeSync,
} from 'node:fs';
import { NEW_FILE, notItsOwner } from '../change/write.ts';
import { isSystemError } from '../file-error.ts';
import { freeBuffer } from '../free-buffer.ts';
import type { ArchiveEntry } from './archive-entries.ts';
import { SparseReader } from './sparse-reader.ts';

const PERMISSIONS = 0o777;

/**
 * Makes the file of an entry at a path where nobody else can come between; `replaced` is the file whose owner it gets, if
 * there is one. Returns the bytes of its content.
 */
export async function makeFile(
  path: string | Buffer,
  entry: ArchiveEntry,
  mode: number,
  replaced: Stats | null,
): Promise<number> {
  const fd = openSync(path, NEW_FILE, mode & PERMISSIONS);
  try {
    const bytes = await writeContent(fd, entry);
    if (replaced) keepOwner(fd, replaced);
    if (replaced || (mode & (umask() | ~PERMISSIONS)) !== 0) fchmodSync(fd, mode);
    // Of a negative number, Node makes the present; not of its digits.
    const modified = String(entry.modified_s);
    if (!Number.isNaN(entry.modified_s)) futimesSync(fd, modified, modified);
    return bytes;
  } finally {
    closeSync(fd);
  }
}

/** A copy stays its owner's, as what is written into does. */
function keepOwner(fd: number, { uid, gid }: Stats): void {
  const own = fstatSync(fd);
  if (own.uid === uid && own.gid === gid) return;
  try {
    fchownSync(fd, uid, gid);
  } catch (error) {
    throw isSystemError(error, 'EPERM', 'EINVAL') ? notItsOwner() : error;
  }
}

async function writeContent(fd: number, { name, sparse: file, content }: ArchiveEntry): Promise<number> {
  const sparse = file && new SparseReader(name, file);
  let bytes = 0;
  for await (const chunk of content) {
    for (const { position, data } of sparse?.parts(chunk) ?? [{ position: bytes, data: chunk }]) {
      writeAll(fd, data, position);
      bytes += data.length;
    }
    if (!sparse) freeBuffer(chunk);
  }
  sparse?.end();
  if (file) ftruncateSync(fd, file.size);
  return bytes;
}

/** Writes all of `data` at a position of a file; the kernel may take it in parts. */
function writeAll(fd: number, data: Buffer, position: number): void {
  for (let done = 0; done < data.length; ) {
    done += writeSync(fd, data, done, data.length - done, position + done);
  }
}

let known_umask: number | null = null;

/** What the kernel takes from the modes of new files. Read once: a program sets it at its start. */
function umask(): number {
  if (known_umask !== null) return known_umask;
  const [, octal = '777'] = /^Umask:\s+([0-7]+)$/m.exec(readFileSync('/proc/self/status', 'latin1')) ?? [];
  known_umask = Number.parseInt(octal, 8);
  return known_umask;
}
