import { v7 } from 'uuid';
import { kernelRandom } from './entropy.ts';

const RANDOM_BYTES = 16;

/**
 * Returns `count` new ids, each `prefix` and a UUIDv7. The random part is read from the kernel on each call, so ids stay
 * unique across forks, snapshots and clock steps.
 */
export function newIds(prefix: string, count: number, wall_ms: number): string[] {
  const random = kernelRandom(count * RANDOM_BYTES);
  return Array.from({ length: count }, (_, i) => {
    const bytes = random.subarray(i * RANDOM_BYTES, (i + 1) * RANDOM_BYTES);
    return `${prefix}${v7({ msecs: wall_ms, random: bytes })}`;
  });
}

/** Returns a new id, `prefix` and a UUIDv7: it sorts by its time. */
export function newId(prefix: string, wall_ms: number): string {
  return `${prefix}${v7({ msecs: wall_ms, random: kernelRandom(RANDOM_BYTES) })}`;
}
