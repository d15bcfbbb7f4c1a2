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
