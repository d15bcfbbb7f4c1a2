import { openSync, readSync } from 'node:fs';
import { StartError } from '../contract/errors.ts';

let device: number | undefined;

/**
 * Returns random bytes, read from the kernel on every call. Throws StartError if `/dev/urandom` cannot be opened.
 *
 * A forked or restored sandbox holds a copy of this process's memory, including the state of any generator in user
 * space: both copies would then make the same ids. Only the kernel's generator is reseeded after a fork.
 */
export function kernelRandom(size_bytes: number): Buffer {
  const bytes = Buffer.alloc(size_bytes);
  device ??= openDevice();
  for (let filled = 0; filled < size_bytes; ) {
    filled += readSync(device, bytes, filled, size_bytes - filled, null);
  }
  return bytes;
}

function openDevice(): number {
  try {
    return openSync('/dev/urandom', 'r');
  } catch (error) {
    throw new StartError(`/dev/urandom cannot be read: ${(error as Error).message}`);
  }
}
