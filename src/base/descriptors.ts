import { readdirSync, readFileSync } from 'node:fs';

/** Where a process may open as many, none is counted. */
const PLENTY = 1024;
/** What files, children and deliveries can count on, as a part of the limit. */
const RESERVE = 1 / 4;

/** How many descriptors this process may open; infinite where the platform does not tell. */
export function descriptorLimit(): number {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return Number(limit ?? Number.POSITIVE_INFINITY);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** Whether so few descriptors are free that connections have to make room. */
export function areDescriptorsShort(limit: number): boolean {
  if (limit >= PLENTY) return false;
  try {
    return limit - readdirSync('/proc/self/fd').length < limit * RESERVE;
  } catch {
    return true; // none is left to look with
  }
}
