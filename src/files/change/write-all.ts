import { writeSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';

/** Writes all of `data` at a position of a file; the kernel may take it in parts. Throws the system's error. */
export async function writeAll(file: FileHandle, data: Buffer, position: number): Promise<void> {
  for (let done = 0; done < data.length; ) {
    done += (await file.write(data, done, data.length - done, position + done)).bytesWritten;
  }
}

/** Like `writeAll`, but synchronous. */
export function writeAllNow(fd: number, data: Buffer, position: number): void {
  for (let done = 0; done < data.length; ) {
    done += writeSync(fd, data, done, data.length - done, position + done);
  }
}
