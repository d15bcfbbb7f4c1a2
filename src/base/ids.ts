import { v7 } from 'uuid';
import { kernelRandom } from './entropy.ts';

const RANDOM_BYTES = 16;

/**
 * `count` new event ids, `evt_` + UUIDv7. Source: contract section 2, `event_id`.
 * The random part comes from the kernel at this call, so ids stay unique over forks, snapshots and clock steps.
 */
export function newEventIds(count: number, wall_ms: number): string[] {
  const random = kernelRandom(count * RANDOM_BYTES);
  return Array.from({ length: count }, (_, i) => {
    const bytes = random.subarray(i * RANDOM_BYTES, (i + 1) * RANDOM_BYTES);
    return `evt_${v7({ msecs: wall_ms, random: bytes })}`;
  });
}

/** A new id, `prefix` + UUIDv7: sorts by its time, and is unique over forks and clock steps like an event's. */
export function newId(prefix: string, wall_ms: number): string {
  return `${prefix}${v7({ msecs: wall_ms, random: kernelRandom(RANDOM_BYTES) })}`;
}
