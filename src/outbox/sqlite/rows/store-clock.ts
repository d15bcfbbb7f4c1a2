import type { Clock } from '../../../base/clock.ts';

/** The clocks as they are stored with each commit. */
export interface KeptClock {
  clock_ms: number;
  clock_wall_ms: number;
  boot_id: string;
  boot_ms: number;
}

/** The clocks that a commit stores, at `clock_ms` of the store's clock. */
export function keptClock(clock: Clock, clock_ms: number): KeptClock {
  const { id, ms } = clock.boot();
  return { clock_ms, clock_wall_ms: clock.wallMs(), boot_id: id, boot_ms: Math.round(ms) };
}

/**
 * The store's clock now, in ms: its value at the last commit plus the time since, by the machine's own clock in the same
 * boot. After another boot the wall clock counts, which may have been stepped, but no more than the time since this boot. Source: contract section 3, Clock.
 */
export function storeNow(kept: KeptClock, clock: Clock): number {
  const wall_ms = clock.wallMs();
  if (kept.clock_ms === 0) return wall_ms;
  const { id, ms } = clock.boot();
  const since_ms = ms - kept.boot_ms;
  const is_same_boot = id !== '' && id === kept.boot_id && since_ms >= 0;
  const away_ms = is_same_boot ? since_ms : Math.min(Math.max(0, wall_ms - kept.clock_wall_ms), ms);
  return Math.round(kept.clock_ms + away_ms);
}
