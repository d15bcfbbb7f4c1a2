import { readdirSync, readFileSync } from 'node:fs';

/** With a limit of at least this, open descriptors are not counted. */
const PLENTY = 1024;
/** The share of the limit that is reserved for files, children and deliveries. */
const RESERVE = 1 / 4;

/** The number of descriptors that this process may open; infinite if the platform does not say. */
export function descriptorLimit(): number {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return Number(limit ?? Number.POSITIVE_INFINITY);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** Whether so few descriptors are free that idle connections must be closed. `limit` is `descriptorLimit()`. */
export function areDescriptorsShort(limit: number): boolean {
  if (limit >= PLENTY) return false;
  try {
    return limit - readdirSync('/proc/self/fd').length < limit * RESERVE;
  } catch {
    return true; // No descriptor is left to read the folder with.
  }
}
