import { fileSystemOf } from '../base/linux/filesystem.ts';

/** Whether a directory is in memory and lost on reboot; false if it cannot be examined. */
export function isVolatile(directory: string): boolean {
  try {
    return fileSystemOf(directory).kind === 'memory';
  } catch {
    return false; // Using the directory reports the error.
  }
}
