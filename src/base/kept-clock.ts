import type { Clock } from './clock.ts';

/** A clock that is kept on disk, at `clock_ms` of its own, with what the machine's clocks said then. All in ms. */
export interface KeptClock {
  clock_ms: number;
  clock_wall_ms: number;
  boot_id: string;
  boot_ms: number;
}

/** The clocks to keep, at `clock_ms` of the kept one. */
export function keptClock(clock: Clock, clock_ms: number): KeptClock {
  const { id, ms } = clock.boot();
  return { clock_ms, clock_wall_ms: clock.wallMs(), boot_id: id, boot_ms: Math.round(ms) };
}

/** The time since a clock was kept, in ms, by the machine's own clock; null after another boot, which does not know it. */
export function sinceKept(kept: KeptClock, clock: Clock): number | null {
  const { id, ms } = clock.boot();
  const since_ms = ms - kept.boot_ms;
  return id !== '' && id === kept.boot_id && since_ms >= 0 ? since_ms : null;
}
