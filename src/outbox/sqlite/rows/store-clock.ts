import type { Clock } from '../../../base/clock.ts';
import { type KeptClock, sinceKept } from '../../../base/kept-clock.ts';

/**
 * The store's clock now, in ms: its value at the last commit plus the time since, by the machine's own clock in the same
 * boot. After another boot the wall clock counts, which may have been stepped, but no more than the time since this boot. Source: contract section 3, Clock.
 */
export function storeNow(kept: KeptClock, clock: Clock): number {
  const wall_ms = clock.wallMs();
  if (kept.clock_ms === 0) return wall_ms;
  const by_wall_ms = Math.max(0, wall_ms - kept.clock_wall_ms);
  const away_ms = sinceKept(kept, clock) ?? Math.min(by_wall_ms, clock.boot().ms);
  return Math.round(kept.clock_ms + away_ms);
}
