import { Buffer } from 'node:buffer';
import { closeSync, lstatSync, openSync, readSync } from 'node:fs';

const READ_BYTES = 1024 * 1024;

/** Throws where the disk cannot read the files: SQLite takes some of its errors for damage. */
export function checkReadable(paths: string[]): void {
  const buffer = Buffer.alloc(READ_BYTES);
  for (const path of paths) {
    if (!lstatSync(path, { throwIfNoEntry: false })?.isFile()) continue;
    const file = openSync(path, 'r');
    try {
      for (let at = 0, read = 1; read > 0; at += read) read = readSync(file, buffer, 0, READ_BYTES, at);
    } finally {
      closeSync(file);
    }
  }
}

/** Whether the same files may be read another time: an error of the disk or of this process, not of what they hold. */
export function mayPass(error: unknown): boolean {
  const { code = '' } = error as NodeJS.ErrnoException;
  if (code.startsWith('SQLITE_'))
    return !/^SQLITE_(CORRUPT|NOTADB|ERROR|SCHEMA|TOOBIG|MISMATCH|FORMAT)/.test(code);
  return /^E[A-Z0-9]+$/.test(code) || code === 'ERR_MEMORY_ALLOCATION_FAILED';
}
