import { statfsSync } from 'node:fs';

/** The numbers that statfs(2) gives to tmpfs and ramfs. */
const IN_MEMORY = new Set([0x01021994, 0x858458f6]);

/** Whether a directory is in memory and lost on reboot; false if it cannot be examined. */
export function isVolatile(directory: string): boolean {
  try {
    return IN_MEMORY.has(statfsSync(directory).type);
  } catch {
    return false; // Using the directory reports the error.
  }
}
