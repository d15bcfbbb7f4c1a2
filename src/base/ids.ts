import { v7 } from 'uuid';
import { kernelRandom } from './entropy.ts';

const RANDOM_BYTES = 16;

/**
 * Returns `count` new event ids, each `evt_` and a UUIDv7. Source: contract section 2, `event_id`.
 * The random part is read from the kernel on each call, so ids stay unique across forks, snapshots and clock steps.
 */
export function newEventIds(count: number, wall_ms: number): string[] {
  const random = kernelRandom(count * RANDOM_BYTES);
  return Array.from({ length: count }, (_, i) => {
    const bytes = random.subarray(i * RANDOM_BYTES, (i + 1) * RANDOM_BYTES);
    return `evt_${v7({ msecs: wall_ms, random: bytes })}`;
  });
}

/** Returns a new id, `prefix` and a UUIDv7: it sorts by its time and is as unique as an event id. */
export function newId(prefix: string, wall_ms: number): string {
  return `${prefix}${v7({ msecs: wall_ms, random: kernelRandom(RANDOM_BYTES) })}`;
}
